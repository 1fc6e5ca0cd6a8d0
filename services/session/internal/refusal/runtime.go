package refusal

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// RuntimeMessage refuses a message of an attached process.
func RuntimeMessage(field, message string) error {
	return apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, message, apierr.Field(field, message))
}

// RuntimeSilent sends an attached process away that has not sent or read what it has to.
func RuntimeSilent(message string) error {
	return Of(codes.DeadlineExceeded, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_FAILED, message)
}

// RuntimeStrays sends an attached process away that sends messages about steps that it does not have.
func RuntimeStrays(most int, step int64) error {
	return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_FAILED, fmt.Sprintf(
		"More than %d messages in a row are about steps that the process does not have, such as %d. Send them for the last step of a turn only, until it has an answer.", most, step))
}

// RuntimeDraining refuses a process while the server stops.
func RuntimeDraining() error {
	return apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining, "The server is stopping. Attach again: another server takes over.", apierr.RetryAfter(time.Second))
}

// RuntimeAtFault reports whether an attached process was sent away by its own fault, and why.
func RuntimeAtFault(why error) (message string, ok bool) {
	switch st := status.Convert(why); st.Code() { //nolint:exhaustive // the others are no fault of the process
	case codes.InvalidArgument, codes.DeadlineExceeded, codes.ResourceExhausted:
		return st.Message(), true
	default:
		return "", false
	}
}
