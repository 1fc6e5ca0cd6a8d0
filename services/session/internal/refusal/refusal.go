// Package refusal has the errors that callers of the service see, in words for people: what happened, why, and what to do.
// Inner packages refuse by it and know no code of gRPC.
package refusal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Domain is the domain of this service's errors in google.rpc.ErrorInfo.
const Domain = "session.fairlead.dev"

// Of returns an error of the API by its code and reason.
func Of(c codes.Code, r sessionv1.ErrorReason, message string, opts ...apierr.Option) error {
	return apierr.Of(c, r, message, opts...)
}

// Input refuses a field of the request.
func Input(field, message string) error { return Field(field, message, message) }

// Field refuses a field of the request whose fault is described apart from the message.
func Field(field, description, message string) error {
	return apierr.New(codes.InvalidArgument, Domain, apierr.ReasonInvalidRequest, message, apierr.Field(field, description))
}

// Subject is what a request is about, for the text of an error.
type Subject struct {
	Session, Turn, Call, RequestID string
}

// Store is the only table from the store's errors to the API's. Any other
// error is INTERNAL.
func Store(err error, s Subject) error {
	var taken *store.KeyTakenError
	var capped *store.CapError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrNotFound) && s.Turn != "":
		return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND,
			fmt.Sprintf("There is no turn %s. List the session's turns to see which there are.", s.Turn), apierr.Resource("fairlead.dev/Turn", s.Turn, "not found"))
	case errors.Is(err, store.ErrNotFound):
		return SessionNotFound(s.Session)
	case errors.As(err, &taken):
		return KeyTaken("sessions/" + taken.Session)
	case errors.Is(err, store.ErrArchived):
		return SessionArchived(s.Session)
	case errors.Is(err, store.ErrSubagent):
		return SubagentSession(s.Session)
	case errors.Is(err, store.ErrExists):
		return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS,
			fmt.Sprintf("There is already a session %s. Choose another session_id, or leave it out to get a new one.", s.Session), apierr.Resource("fairlead.dev/Session", s.Session, "exists already"))
	case errors.Is(err, store.ErrDeleting):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SESSION_DELETING,
			fmt.Sprintf("There was a session %s, and its files and calls are still being removed. Try again in a moment, or choose another session_id.", s.Session),
			apierr.Precondition("SESSION_DELETING", s.Session, "still being removed"))
	case errors.Is(err, store.ErrRequestIDReused):
		return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED,
			fmt.Sprintf("The request id %q was used for another request. Use a new one for a new request, and the old one only to repeat the same.", s.RequestID),
			apierr.Metadata(map[string]string{"request_id": s.RequestID}))
	case errors.Is(err, store.ErrCallNotWaiting):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING,
			fmt.Sprintf("Call %s does not wait for this answer: it runs, or it waits for another kind of answer. Follow the session's events to see what it waits for.", s.Call),
			apierr.Precondition("CALL", s.Call, "does not wait"))
	case errors.Is(err, store.ErrDigestMismatch):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_DIGEST_MISMATCH,
			fmt.Sprintf("The digest is not the one that call %s asks about. Show the person the arguments of the latest approval.requested, and answer with its digest.", s.Call),
			apierr.Precondition("CALL", s.Call, "other arguments"))
	case errors.Is(err, store.ErrTurnNotActive):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_ACTIVE,
			fmt.Sprintf("No such turn of session %s is active: it has ended, or waits behind another one. Send the permission mode with the next turn, as options.permission_mode, or by `fairlead run --mode`.", s.Session),
			apierr.Precondition("SESSION", s.Session, "the turn is not active"))
	case errors.Is(err, store.ErrNothingToResume):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NOTHING_TO_RESUME,
			fmt.Sprintf("Session %s has no unfinished turn: it has no turns, or the last turn is COMPLETE. Send a message instead.", s.Session),
			apierr.Precondition("SESSION", s.Session, "nothing to resume"))
	case errors.Is(err, store.ErrQueueFull):
		return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_QUEUE_FULL,
			fmt.Sprintf("%d turns wait in session %s already. Wait until one has ended.", store.MaxQueuedTurns, s.Session),
			apierr.Quota(s.Session, "queued turns"), apierr.RetryAfter(10*time.Second))
	case errors.As(err, &capped):
		return LimitReached(whose(capped), fmt.Sprintf("session.limits.%s: %d", capKey(capped), capped.Most), capWait)
	case errors.Is(err, store.ErrStaleEpoch):
		return Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_STALE_EPOCH,
			fmt.Sprintf("Another replica holds session %s now. Try again.", s.Session))
	case errors.Is(err, store.ErrUnavailable):
		return Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE,
			"The database cannot be reached. Try again, with the same request id: completed work is not repeated.", apierr.RetryAfter(time.Second))
	case errors.Is(err, page.ErrBadToken):
		return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN,
			"The page token is not from this list. Use next_page_token of the previous page, with the same filters, or start again without a token.",
			apierr.Field("page_token", "not a token of this list"))
	default:
		return err
	}
}

// capWait is the wait that a caller over a cap is told: turns and sessions end at any time.
const capWait = 5 * time.Second

func whose(c *store.CapError) string {
	if c.User == "" {
		return "tenants/" + c.Tenant
	}
	return "users/" + c.User
}

// capKey returns the key of a cap below session.limits.
func capKey(c *store.CapError) string {
	if c.User == "" {
		return "tenant." + c.What
	}
	return "user." + c.What
}

// SessionNotFound refuses a session that does not exist.
func SessionNotFound(session string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND,
		fmt.Sprintf("There is no session %s. It was deleted, or never existed; create one with CreateSession (POST /v1/sessions).", session),
		apierr.Resource("fairlead.dev/Session", session, "not found"))
}

// SessionActive refuses a change of a session in which a turn is active.
func SessionActive(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SESSION_ACTIVE,
		fmt.Sprintf("Session %s has an active or queued turn. Interrupt it first, with cancel_queued, and wait until it has ended.", session),
		apierr.Precondition("SESSION_ACTIVE", session, "a turn is active"))
}

// TurnActive refuses a turn while another one is active.
func TurnActive(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
		fmt.Sprintf("Session %s has an active or queued turn, and the request asked to be refused then, or to resume. Wait until it has ended, or use another on_active.", session),
		apierr.Precondition("TURN_ACTIVE", session, "a turn is active"))
}

// SessionArchived refuses an archived session.
func SessionArchived(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
		fmt.Sprintf("Session %s is archived: it can be read, but takes no messages. Bring it back (ArchiveSession with undo), or create another one.", session),
		apierr.Precondition("SESSION", session, "archived"))
}

// SubagentSession refuses a session in which a subagent works.
func SubagentSession(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_SUBAGENT_SESSION,
		fmt.Sprintf("A subagent works in session %s: it can be read, stopped and answered, but takes no messages, has no files of its own, and is deleted with its parent. See the session's parent_call, and use that session.", session),
		apierr.Precondition("SESSION", session, "a subagent's"))
}

// KeyTaken refuses a key of the caller's that another session has.
func KeyTaken(session string) error {
	return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_KEY_TAKEN,
		fmt.Sprintf("Session %s has this key already. Use that session, archive it, or create the new one with replace.", session),
		apierr.Resource("fairlead.dev/Session", session, "has the key"), apierr.Metadata(map[string]string{"session": session}))
}
