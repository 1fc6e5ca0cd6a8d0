package step

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

// withFallbacks gives the model the fallbacks b and c, with answers of their own.
func withFallbacks(f *fixture, b, c *turntest.Answers) {
	f.Resolve = func(name string) (state.Resolved, error) {
		r := turntest.Model(f.model)
		r.Fallbacks = []string{"p:b", "p:c"}
		switch name {
		case "p:b":
			r = turntest.Model(b)
			r.Name = "b"
		case "p:c":
			r = turntest.Model(c)
			r.Name = "c"
		}
		return r, nil
	}
}

func models(f *fixture) (all []string) {
	for _, e := range f.Events() {
		if s := e.GetStepStarted(); s != nil {
			all = append(all, s.Model)
		}
	}
	return all
}

func TestAFallbackAnswersInTheSameStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &model.Error{Kind: model.Unavailable, Status: 529, Message: "overloaded"}
		long := &model.Error{Kind: model.Unavailable, Status: 429, Message: "come back tomorrow", RetryAfter: time.Hour}
		f := start(t, agent.Spec{}, slices.Repeat([]any{away}, maxAttempts)...)
		b, c := &turntest.Answers{Answers: []any{long}}, &turntest.Answers{Answers: []any{away, "Hello."}}
		withFallbacks(f, b, c)
		out, err := f.Run(f.Scope)
		if err != nil || out.End == nil || out.End.Error != nil {
			t.Fatalf("the outcome is %+v (%v)", out.End, err)
		}
		want := append(slices.Repeat([]string{"p:m"}, maxAttempts), "p:b", "p:c", "p:c")
		if got := models(f); !slices.Equal(got, want) {
			t.Errorf("asked %v, want %v", got, want)
		}
		retries := slices.Repeat([]string{"MODEL_RETRY"}, maxAttempts-1)
		if got := f.Warnings(); !slices.Equal(got, append(retries, "MODEL_FALLBACK", "MODEL_FALLBACK", "MODEL_RETRY")) {
			t.Errorf("warned %v", got)
		}
		restarted := 0
		for _, e := range f.Events() {
			if e.GetStepRestarted() != nil {
				restarted++
			}
		}
		if restarted != len(want)-1 {
			t.Errorf("%d of %d failed attempts were voided", restarted, len(want)-1)
		}
	})
}

func TestWithoutAnyModelLeftTheTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &model.Error{Kind: model.Unavailable, Status: 529, Message: "overloaded"}
		all := slices.Repeat([]any{away}, maxAttempts)
		f := start(t, agent.Spec{}, all...)
		withFallbacks(f, &turntest.Answers{Answers: all}, &turntest.Answers{Answers: all})
		out, err := f.Run(f.Scope)
		if err != nil || out.End == nil || out.End.Error.GetReason() != "MODEL_UNAVAILABLE" || len(models(f)) != 3*maxAttempts {
			t.Errorf("the outcome is %+v (%v) after %d attempts", out.End, err, len(models(f)))
		}
	})
}

func TestARefusalHasNoFallback(t *testing.T) {
	f := start(t, agent.Spec{}, &model.Error{Kind: model.Refused, Status: 400, Message: "no"})
	withFallbacks(f, nil, nil)
	out, err := f.Run(f.Scope)
	if err != nil || out.End == nil || out.End.Error.GetReason() != "MODEL_REQUEST_REFUSED" || len(models(f)) != 1 {
		t.Errorf("the outcome is %+v (%v), asked %v", out.End, err, models(f))
	}
}

// A crash between two attempts does not give the first model new ones.
func TestTheFallbackStaysAfterACrash(t *testing.T) {
	f := start(t, agent.Spec{})
	b := &turntest.Answers{Answers: []any{"Hello."}}
	withFallbacks(f, b, nil)
	f.Active.Run.Attempt = maxAttempts
	if out, err := f.Run(f.Scope); err != nil || out.End == nil || out.End.Error != nil || len(b.Requests) != 1 {
		t.Errorf("the outcome is %+v (%v), asked %v", out.End, err, models(f))
	}
}

func TestABudgetOfCostsRefusesAModelWithoutAPrice(t *testing.T) {
	for name, c := range map[string]struct {
		limits  budget.Limits
		refused bool
	}{
		"costs": {budget.Limits{MaxCostUSD: 1}, true}, "tokens": {budget.Limits{MaxTokens: 1_000_000}, false}, "none": {budget.Limits{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{}, "Hello.")
			f.Spend = spend.New(spend.Config{Telemetry: turntest.Telemetry(t), Budgets: budget.Config{Scopes: budget.Scopes{Turn: c.limits}}})
			f.Resolve = func(string) (state.Resolved, error) {
				r := turntest.Model(f.model)
				r.Unpriced = true
				return r, nil
			}
			r, err := f.ResolveModel()
			if err != nil {
				t.Fatal(err)
			}
			out := f.Spend.CheckPrice(f.Scope, r)
			if refused := !out.GoesOn(); refused != c.refused || refused && !strings.Contains(out.End.Error.GetMessage(), "no known price") {
				t.Errorf("the outcome is %+v", out.End)
			}
		})
	}
}
