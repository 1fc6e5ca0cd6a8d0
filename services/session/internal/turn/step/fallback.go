package step

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// The attempts of a step go on counting over its models: the first maxAttempts are of the
// model itself, the next ones of its first fallback. So the turn's row says after a crash
// whose turn it is.

// place returns the number of the model, 0 for the first, that makes the attempt after
// this many.
func place(attempts int, r state.Resolved) int { return min(attempts/maxAttempts, len(r.Fallbacks)) }

// lastAttempt returns the last attempt of the model that makes the current one.
func lastAttempt(sc state.Scope, r state.Resolved) int {
	return (place(sc.Active.Run.Attempt-1, r) + 1) * maxAttempts
}

// inTurn returns the model that makes the next attempt.
func inTurn(sc state.Scope, first state.Resolved) (state.Resolved, error) {
	n := place(sc.Active.Run.Attempt, first)
	if n == 0 {
		return first, nil
	}
	r, err := sc.ResolveOther(first.Fallbacks[n-1])
	r.Fallbacks = first.Fallbacks
	return r, err
}

// fallBack logs the error, voids the partial answer, and leaves the step to the next model.
func (s *Stepper) fallBack(sc state.Scope, r state.Resolved, failed *model.Error) error {
	n := place(sc.Active.Run.Attempt-1, r)
	sc.Active.Run.Attempt = max(sc.Active.Run.Attempt, (n+1)*maxAttempts) // A long wait leaves attempts unused.
	s.Telemetry.Retried(sc)
	write := VoidAttempt(sc.Session)
	warning := fmt.Sprintf("%v. The model %s:%s gives way to %s for this step.", failed, r.Provider, r.Name, r.Fallbacks[n])
	write.Events = append([]*sessionv1.Event{sc.StepEvent(state.Warning("MODEL_FALLBACK", warning))}, write.Events...)
	return sc.Append(write)
}
