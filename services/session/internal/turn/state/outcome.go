package state

import (
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Outcome is what a piece of work means for the active turn. The zero value lets the turn go on.
type Outcome struct {
	// Stopped: the turn's context ended before the work was done. The loop finds the cause.
	Stopped bool
	// Wait: the turn waits for answers.
	Wait *Wait
	// End: the turn ends.
	End *End
}

// Wait is how a turn begins to wait.
type Wait struct {
	Write   store.Write // joins the write of the wait
	CallIDs []string    // the calls that wait for an answer
}

// End is how a turn ends.
type End struct {
	Write store.Write // joins the write of the end
	State sessionv1.TurnState
	Error *sessionv1.TurnError
	// Failure: the open calls get a result first, and the log gets an error event.
	Failure bool
	// Cause is why the turn stops; the loop derives the other fields from it.
	Cause error
}

// GoesOn reports whether the turn goes on.
func (o Outcome) GoesOn() bool { return !o.Stopped && o.Wait == nil && o.End == nil }

// Stopped returns the outcome of work that the end of the turn's context broke off.
func Stopped() Outcome { return Outcome{Stopped: true} }

// Ended ends the turn in this state.
func Ended(write store.Write, s sessionv1.TurnState, err *sessionv1.TurnError) Outcome {
	return Outcome{End: &End{Write: write, State: s, Error: err}}
}

// Partial ends the turn at a limit; its work is kept.
func Partial(write store.Write, reason sessionv1.ErrorReason, message string) Outcome {
	return Ended(write, sessionv1.TurnState_TURN_STATE_PARTIAL, TurnError(reason, message))
}

// Failed ends the turn because the agent cannot go on.
func Failed(write store.Write, reason sessionv1.ErrorReason, message string) Outcome {
	return Outcome{End: &End{Write: write, State: sessionv1.TurnState_TURN_STATE_FAILED, Error: TurnError(reason, message), Failure: true}}
}

// Interrupted ends the turn because of cause.
func Interrupted(write store.Write, cause error) Outcome {
	return Outcome{End: &End{Write: write, Cause: cause}}
}

// ErrHandOver says that a worker has stopped between two steps because it was asked to. The lease
// must be released so that another replica goes on.
var ErrHandOver = errors.New("stopped between two steps, to hand the session over")

// PassOnError hands a session over to one replica.
type PassOnError struct{ Replica string }

// Error says to whom.
func (e *PassOnError) Error() string { return "the session goes on at the replica " + e.Replica }

// Unwrap makes it ErrHandOver.
func (e *PassOnError) Unwrap() error { return ErrHandOver }
