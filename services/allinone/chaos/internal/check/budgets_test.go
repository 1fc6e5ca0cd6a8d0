package check_test

import (
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

const partial = sessionv1.TurnState_TURN_STATE_PARTIAL

// short is the recording of a session whose tenant and user have budgets: one turn goes well, and the next ends at its
// second step. All its calls cost 40 nano-USD each.
func short(t *testing.T) (*record.Run, *record.Session, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	plan := long(t, sc)
	s := &story{session: &record.Session{Name: "sessions/s", Tenant: "small", User: "ann"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	s.play(t, sc, script.Text(plan, "a"))
	text := script.Text(plan, "b")
	want, _ := sc.Expect(text)
	turn := s.accept(text, sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	s.begin(turn, text)
	s.step++
	s.playStep(want.Steps[0])
	s.finish(turn, partial, "BUDGET_EXHAUSTED", "")
	calls := int64(0)
	for _, e := range s.session.Log {
		if f := e.GetStepFinished(); f != nil {
			f.Usage = &sessionv1.Usage{InputTokens: 10, OutputTokens: 2, CostNanoUsd: 40}
			calls++
		}
	}
	run := s.recording()
	run.Prices = record.Prices{Input: 3, Output: 5}
	run.Budgets = []record.Budget{
		{Tenant: "small", NanoUSD: 40*calls + 39, Window: time.Hour},
		{Tenant: "small", User: "ann", NanoUSD: 40 * calls, Window: time.Hour},
		{Tenant: "small", User: "ben", NanoUSD: 1, Window: time.Hour},
	}
	return run, s.session, sc
}

func TestABudgetEndsATurn(t *testing.T) {
	run, _, sc := short(t)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Complete != 1 || st.Partial != 1 || st.Fullest != 100 {
		t.Errorf("the figures are %+v", st)
	}
}

func TestPlantedFaultsAboutBudgetsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, run *record.Run, s *record.Session)
	}{
		{"a tenant's budget was exceeded", check.Budgets, func(_ *testing.T, run *record.Run, _ *record.Session) { run.Budgets[0].NanoUSD -= 40 }},
		{"a user's budget was exceeded", check.Budgets, func(_ *testing.T, run *record.Run, _ *record.Session) { run.Budgets[1].NanoUSD-- }},
		{"all windows together were exceeded", check.Budgets, func(_ *testing.T, run *record.Run, _ *record.Session) {
			run.Budgets[1].Window, run.Budgets[1].NanoUSD = 3*time.Second, 1 // no call lies within one, for the slack
		}},
		{"a call cost something else than the price table says", check.Budgets, func(t *testing.T, _ *record.Run, s *record.Session) {
			_, e := find(t, s.Log, func(e *event) bool { return e.GetStepFinished() != nil })
			e.GetStepFinished().Usage.CostNanoUsd--
		}},
		{"a budget ended a turn where there is none", check.Completes, func(_ *testing.T, run *record.Run, _ *record.Session) { run.Budgets = run.Budgets[2:] }},
		{"a turn ended PARTIAL by something else", check.Completes, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Log[len(s.Log)-1].GetTurnFinished().Error.Reason = "MAX_STEPS"
		}},
		{"a turn that a budget ended said something else before", check.Completes, func(_ *testing.T, _ *record.Run, s *record.Session) {
			of(s, 1, isDelta)[0].GetTextDelta().Text = "something else "
		}},
		{"a turn that a budget ended lost its work", check.EffectOnce, func(_ *testing.T, _ *record.Run, s *record.Session) {
			s.Effects = without(s.Effects, effectOf(s, 1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, s, sc := short(t)
			c.plant(t, run, s)
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
