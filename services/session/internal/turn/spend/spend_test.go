package spend

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

func newTurn(t *testing.T) *state.Turn {
	t.Helper()
	a, err := state.NewTurn("t1", &sessionv1.Turn{Name: "sessions/s/turns/t1", State: sessionv1.TurnState_TURN_STATE_RUNNING}, []byte(`{"user":"u"}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAReservationIsSettledAsWhatTheCallHasUsed(t *testing.T) {
	usage := &sessionv1.Usage{InputTokens: 10, CacheReadTokens: 5, OutputTokens: 7, CostNanoUsd: 99}
	refused := &model.Error{Kind: model.Unavailable, Status: 529}
	for name, c := range map[string]struct {
		settle func(*Spend, *state.Turn, *store.Write)
		want   store.Settle
	}{
		"an answer": {func(s *Spend, a *state.Turn, w *store.Write) {
			s.ModelAsked()
			s.ModelAnswered(nil)
			s.Settle(a, w, usage)
		}, store.Settle{ID: "t1.r1", Used: store.Amount{Tokens: 22, CostNanoUSD: 99}}},
		"an answer without usage": {func(s *Spend, a *state.Turn, w *store.Write) { s.Settle(a, w, nil) }, store.Settle{ID: "t1.r1", Unknown: true}},
		"no call":                 {func(s *Spend, a *state.Turn, w *store.Write) { s.SettleBroken(a, w) }, store.Settle{ID: "t1.r1"}},
		"a call that broke off": {func(s *Spend, a *state.Turn, w *store.Write) {
			s.ModelAsked()
			s.ModelAnswered(errors.New("the connection was reset"))
			s.SettleBroken(a, w)
		}, store.Settle{ID: "t1.r1", Unknown: true}},
		"a refused call": {func(s *Spend, a *state.Turn, w *store.Write) {
			s.ModelAsked()
			s.ModelAnswered(refused)
			s.SettleBroken(a, w)
		}, store.Settle{ID: "t1.r1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := New(Config{}), newTurn(t)
			s.unused, a.Run.Budget.Open = true, "t1.r1"
			var write store.Write
			c.settle(s, a, &write)
			if d := cmp.Diff([]store.Settle{c.want}, write.Settle); d != "" || a.Run.Budget.Open != "" {
				t.Errorf("open is %q: %s", a.Run.Budget.Open, d)
			}
			s.SettleBroken(a, &write)
			if len(write.Settle) != 1 {
				t.Error("the reservation is settled twice")
			}
		})
	}
}

func TestAReservationOfAnEarlierWorkerCountsAsReserved(t *testing.T) {
	s, a := New(Config{}), newTurn(t)
	a.Run.Budget.Open, a.Run.Budget.Time = "t1.r3", true
	a.Run.Budget.Question = &state.BudgetQuestion{CallID: "q", Limit: "turn tokens"}
	var write store.Write
	s.End(a, &write)
	want := []store.Settle{{ID: "t1.r3", Unknown: true}, {ID: timeReservation, Unknown: true}}
	if d := cmp.Diff(want, write.Settle); d != "" || len(write.Waited) != 1 || a.Run.Budget.Question != nil {
		t.Errorf("waited %v: %s", write.Waited, d)
	}
}

func TestAPersonsAnswerAboutASoftLimit(t *testing.T) {
	for name, c := range map[string]struct {
		answer  *state.Answer
		allowed bool
		says    string // how the turn ends
	}{
		"allowed":           {&state.Answer{Approved: true, User: "ann"}, true, ""},
		"refused":           {&state.Answer{User: "ann", Comment: "too dear"}, false, "ann did not want"},
		"refused, a reason": {&state.Answer{Comment: "too dear"}, false, "They said: too dear"},
		"no answer in time": {&state.Answer{Expired: true, Comment: "No answer came within 1m0s."}, false, "No answer came within 1m0s."},
		"resumed otherwise": {nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTurn(t)
			a.Run.Budget.Question = &state.BudgetQuestion{CallID: "q", Limit: "turn tokens"}
			if c.answer != nil {
				a.Run.Approvals["q"] = *c.answer
			}
			var write store.Write
			out := takeAnswer(a, &write)
			if out.GoesOn() != (c.says == "") || c.says != "" && !strings.Contains(out.End.Error.Message, c.says) {
				t.Errorf("the outcome is %+v", out.End)
			}
			if got := len(a.Run.Budget.Allowed) == 1; got != c.allowed || a.Run.Budget.Question != nil || len(a.Run.Approvals) != 0 {
				t.Errorf("allowed is %v, and left are %v", a.Run.Budget.Allowed, a.Run.Approvals)
			}
		})
	}
}

func TestARequestThatContinuesAMeasuredOneCountsItsBeginningAsMeasured(t *testing.T) {
	message := func(name, text string) *sessionv1.Message {
		return &sessionv1.Message{Name: name, Blocks: []*sessionv1.Block{state.TextBlock(text)}}
	}
	long := strings.Repeat("x", 10_000)
	first := model.Request{Model: "m", Messages: []*sessionv1.Message{message("1", long)}}
	next := model.Request{Model: "m", Messages: []*sessionv1.Message{message("1", long), message("2", "more")}}
	other := model.Request{Model: "m", Messages: []*sessionv1.Message{message("9", long), message("2", "more")}}
	s, a := New(Config{}), newTurn(t)
	s.inputBound(first)
	a.Run.Budget.Open = "t1.r1"
	s.Settle(a, &store.Write{}, &sessionv1.Usage{InputTokens: 1200, OutputTokens: 1})
	if n := s.inputBound(next); n < 1200 || n > 1400 {
		t.Errorf("the bound is %d", n)
	}
	if n := s.inputBound(other); n < 10_000 {
		t.Errorf("the bound of another conversation is %d", n)
	}
	s.Forget()
	if n := s.inputBound(next); n < 10_000 {
		t.Errorf("the bound after a rewind is %d", n)
	}
}

func TestTimeIsRenewedAtTheHalfOfASliceAndAtTheEndOfAShortOne(t *testing.T) {
	for _, c := range []struct{ length, least, most time.Duration }{
		{0, 0, 0},
		{20 * time.Second, 9 * time.Second, 10 * time.Second},
		{100 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond},
	} {
		h := newTimeHeld()
		h.length, h.since = c.length, time.Now()
		if got := h.renewal(); got < c.least || got > c.most {
			t.Errorf("a slice of %v is renewed after %v", c.length, got)
		}
	}
}

func TestTheTextOfADenialSaysWhatToDo(t *testing.T) {
	end := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		balance store.Balance
		says    string
	}{
		"turn":    {store.Balance{Bound: store.Bound{Scope: store.BudgetTurn}}, "the turn's limits"},
		"session": {store.Balance{Bound: store.Bound{Scope: store.BudgetSession}}, "Create another session"},
		"user":    {store.Balance{Bound: store.Bound{Scope: store.BudgetUser, Subject: "ann"}, WindowEnd: end}, "Counting restarts at 2026-01-02T00:00:00Z"},
		"tenant":  {store.Balance{Bound: store.Bound{Scope: store.BudgetTenant, Subject: "acme"}}, "The tenant acme has used"},
	} {
		out := Exhausted(store.Write{}, &store.Denial{Balance: c.balance, Kind: store.LimitTokens})
		if out.End.State != sessionv1.TurnState_TURN_STATE_PARTIAL || !strings.Contains(out.End.Error.Message, c.says) {
			t.Errorf("%s: %v", name, out.End.Error)
		}
	}
}
