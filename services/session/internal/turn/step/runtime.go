package step

import (
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Runtime drives a turn from one model call to the next: it decides what the model is asked, or says
// itself what the agent says. All else is the loop's, whatever the runtime: the call itself with its
// retries and budgets, the commit of the answer, the tool calls, and the end of the turn.
type Runtime interface {
	// Compose gives the runtime what is new in the conversation since its last request, and returns
	// what comes next. It may be asked again for the same step, with or without an Answer between. An
	// outcome ends the turn. The error state.ErrHandOver leaves the turn to another worker.
	Compose(sc state.Scope, r state.Resolved, request model.Request) (Next, state.Outcome, error)
	// Answer gives the runtime the model's answer to its last request.
	Answer(sc state.Scope, resp *model.Response)
	// Leave says that the turn ends, waits, or goes on elsewhere.
	Leave(sc state.Scope)
}

// Next is what comes next in a turn.
type Next struct {
	// Request is what the model is asked.
	Request model.Request
	// Own, if not nil, answers in the place of the session's model.
	Own model.Model
	// Watch, if not nil, gets the pieces of the answer as they come.
	Watch func(model.Delta)
	// ResumePoint, if not nil, returns what is kept with the answer, for the runtime. It is called when the
	// answer is whole.
	ResumePoint func() []byte
}

// LostError says that the runtime failed in the middle of its own answer. The step begins again, with
// what Compose returns then.
type LostError struct{ Why string }

// Error says why.
func (e *LostError) Error() string { return e.Why }

// native asks the model what the session's conversation is.
type native struct{}

// Compose implements Runtime.
func (native) Compose(_ state.Scope, _ state.Resolved, request model.Request) (Next, state.Outcome, error) {
	return Next{Request: request}, state.Outcome{}, nil
}

// Answer implements Runtime.
func (native) Answer(state.Scope, *model.Response) {}

// Leave implements Runtime.
func (native) Leave(state.Scope) {}

// runtime returns the runtime of a name.
func (s *Stepper) runtime(name string) (Runtime, state.Outcome) {
	if name == agent.Native {
		return native{}, state.Outcome{}
	}
	kind := name
	if _, ok := agent.AttachedName(name); ok {
		kind = agent.Attached
	}
	if r := s.Runtimes[kind]; r != nil {
		return r, state.Outcome{}
	}
	return nil, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_UNAVAILABLE, fmt.Sprintf(
		"The turn's runtime %s is not configured on this server. Ask the operator to set session.runtimes.%s.program, or use an agent with the runtime %s.", name, name, agent.Native))
}

// Leave tells the turn's runtime that the turn has ended, waits, or goes on elsewhere. name is the runtime that the turn
// had: after its end the scope knows the agent's runtime alone, and a flag may have chosen another.
func (s *Stepper) Leave(sc state.Scope, name string) {
	if r, out := s.runtime(name); out.GoesOn() {
		r.Leave(sc)
	}
}

// compose asks the runtime what comes next, and returns who answers.
func (s *Stepper) compose(sc state.Scope, runtime Runtime, r state.Resolved, request model.Request) (Next, state.Resolved, state.Outcome, error) {
	next, out, err := runtime.Compose(sc, r, request)
	if errors.Is(err, state.ErrHandOver) {
		if left := s.Spend.Leave(sc); !errors.Is(left, state.ErrHandOver) {
			err = left
		}
	}
	if next.Own != nil {
		next.Request = model.Request{MaxOutputTokens: request.MaxOutputTokens}
		r = own(sc, r, next.Own)
	}
	return next, r, out, err
}

// own returns a runtime that answers in a model's place. It costs what it says; what it may cost is
// taken to be what the model may.
func own(sc state.Scope, r state.Resolved, m model.Model) state.Resolved {
	kind, name, _ := strings.Cut(sc.RuntimeName(), ":")
	return state.Resolved{
		Model: m, Provider: kind, Name: name, MaxOutputTokens: r.MaxOutputTokens, ContextTokens: r.ContextTokens, Guardrails: r.Guardrails,
		Cost: (*sessionv1.Usage).GetCostNanoUsd, Dearest: r.Dearest,
	}
}
