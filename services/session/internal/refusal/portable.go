package refusal

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// SessionRewinding refuses requests that need the files and the conversation to
// agree.
func SessionRewinding(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SESSION_REWINDING,
		fmt.Sprintf("Session %s is being rewound, and its files and conversation may not agree until that is done. Try again in a moment.", session),
		apierr.Precondition("SESSION_REWINDING", session, "being rewound"))
}

// TurnNotEnded refuses a turn from which no session can go on.
func TurnNotEnded(turn, why string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_ENDED,
		"Turn "+turn+" "+why, apierr.Precondition("TURN", turn, "not ended"))
}

// BadImport refuses a file.
func BadImport(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_IMPORT,
		"The file cannot be imported: "+what+". Nothing was imported; export the session again, or use an unchanged export file.",
		apierr.Field("data", what))
}

// LogFolded refuses an export of a log that was folded during each attempt.
func LogFolded() error {
	return Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE,
		"The session's log was folded while it was read, again and again. Export it once more in a moment.", apierr.RetryAfter(time.Second))
}
