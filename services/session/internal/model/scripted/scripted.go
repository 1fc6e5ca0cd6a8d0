// Package scripted is a model that plays a scenario from a YAML file. It needs
// no key and no network: Fairlead uses it until a real model is configured, and
// so do the demo and the tests.
//
// A scenario is a list of turns. The model plays the first turn that fits the
// person's last text, the turn's number and the offered tools, one step for
// each model call. The next step follows from the conversation alone, so a
// script survives restarts. [Scenario] and its parts document the format.
package scripted

import (
	"context"
	"fmt"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Model plays one scenario. It has no state: all methods are safe for
// concurrent use.
type Model struct{ scenario *Scenario }

// New returns a model that plays s. It ignores the model name of its requests.
func New(s *Scenario) *Model { return &Model{scenario: s} }

var _ model.Model = (*Model)(nil)

// Stream plays the step of the scenario at the position of the request's
// conversation. Like a real model, it stops at the request's bound on output
// with `max_tokens`.
func (m *Model) Stream(ctx context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := read(r)
	if most := m.scenario.ContextTokens; most > 0 && int64(c.bytes+3)/4 > most {
		return nil, &model.Error{Kind: model.ContextFull, Status: 400, Message: fmt.Sprintf("the conversation has %d tokens, more than the scenario's %d", (c.bytes+3)/4, most)}
	}
	step := m.step(c)
	p := &player{
		emit: emit, step: step, talk: c,
		budget:  r.MaxOutputTokens,
		failure: step.failure(max(r.Attempt, 1)),
		id:      fmt.Sprintf("scripted_%s_%d_%d", m.scenario.Name, c.turn, c.step),
	}
	return p.play(ctx)
}

// step returns the step to play. Beyond the end of the script, it returns a
// step that says so.
func (m *Model) step(c conversation) *Step {
	t := m.scenario.pick(c)
	if t == nil {
		return say("This is a scripted model, not an AI. Its scenario %q has no answer to this message.", m.scenario.Name)
	}
	if c.step > len(t.Steps) {
		return say("This is a scripted model, not an AI. The script of scenario %q has ended: it has no step %d for this turn.", m.scenario.Name, c.step)
	}
	return &t.Steps[c.step-1]
}

func say(format string, args ...any) *Step {
	return &Step{Text: words(fmt.Sprintf(format, args...))}
}

// kinds are the names of error kinds in a scenario.
var kinds = map[string]model.ErrorKind{
	"unavailable": model.Unavailable, "authentication": model.Authentication, "refused": model.Refused,
	"context_full": model.ContextFull, "billing": model.Billing,
}

// failure returns the failure of the attempt, or nil when it succeeds.
func (s *Step) failure(attempt int) *Failure {
	if f := s.Error; f != nil && (f.Times == 0 || attempt <= f.Times) {
		return f
	}
	return nil
}

func (f *Failure) err(midway bool) *model.Error {
	kind, ok := kinds[f.Kind]
	if !ok {
		kind = kindOf(f.Status)
	}
	msg := f.Message
	if msg == "" {
		msg = "the scripted model fails here, as its scenario says"
	}
	return &model.Error{Kind: kind, Status: f.Status, Message: msg, ProviderText: msg, RetryAfter: time.Duration(f.RetryAfter), Midway: midway}
}

func kindOf(status int) model.ErrorKind {
	switch {
	case status == 401 || status == 403:
		return model.Authentication
	case status == 402:
		return model.Billing
	case status == 0 || status == 408 || status == 409 || status == 429 || status >= 500:
		return model.Unavailable
	}
	return model.Refused
}

func textBlock(s string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
		Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}},
	}}}
}
