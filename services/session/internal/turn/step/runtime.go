package step

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Runtime drives a turn from one model call to the next: it decides what the model is asked. All else
// is the loop's, whatever the runtime: the call itself with its retries and budgets, the commit of the
// answer, the tool calls, and the end of the turn.
type Runtime interface {
	// Compose gives the runtime what is new in the conversation since its last request, and returns
	// the request that it makes of it. It may be asked again for the same step, with or without an
	// Answer between. An outcome ends the turn.
	Compose(sc state.Scope, r state.Resolved, request model.Request) (model.Request, state.Outcome, error)
	// Answer gives the runtime the model's answer to its last request.
	Answer(sc state.Scope, resp *model.Response)
}

// native asks the model what the session's conversation is.
type native struct{}

// Compose implements Runtime.
func (native) Compose(_ state.Scope, _ state.Resolved, request model.Request) (model.Request, state.Outcome, error) {
	return request, state.Outcome{}, nil
}

// Answer implements Runtime.
func (native) Answer(state.Scope, *model.Response) {}

// runtime returns the runtime of the session's agent.
func (s *Stepper) runtime(sc state.Scope) (Runtime, state.Outcome) {
	name := sc.Spec.RuntimeName()
	if name == agent.Native {
		return native{}, state.Outcome{}
	}
	if r := s.Runtimes[name]; r != nil {
		return r, state.Outcome{}
	}
	return nil, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_UNAVAILABLE, fmt.Sprintf(
		"The agent's runtime %s is not configured on this server. Ask the operator to set session.runtimes.%s.program, or use an agent with the runtime %s.", name, name, agent.Native))
}
