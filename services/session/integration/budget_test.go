package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// priced is a turn of two steps, of which each costs a cent and a half.
const priced = `
turns:
  - when: work
    steps:
      - text: [Looking]
        usage: {input_tokens: 500, output_tokens: 100}
        tools: [{name: Bash, input: {command: ls}}]
      - text: [Done]
        pause: 20ms
        usage: {input_tokens: 500, output_tokens: 100}
  - when: hungry
    steps:
      - text: [Looking]
        usage: {input_tokens: 1400, output_tokens: 1000}
        tools: [{name: Bash, input: {command: ls}}]
      - text: [Done]
  - when: long
    steps: [{text: [word word word word], repeat: 2000}]
  - when: refused
    steps:
      - text: [ok]
        usage: {input_tokens: 500, output_tokens: 100}
        error: {status: 429, times: 1, retry_after: 1ms}
  - when: broken
    steps:
      - text: [one, two]
        usage: {input_tokens: 500, output_tokens: 100}
        error: {midway: 1, times: 1, retry_after: 1ms}
  - when: slow
    steps: [{text: [a, b], delay: 1m}]
`

const cent = 10_000_000 // in billionths of a dollar

// withPrices gives the model prices: 10 dollars for a million input tokens, 100
// for output; an answer has at most 2,000 tokens.
func withPrices(change func(*budget.Config)) func(*session.Config) {
	return func(c *session.Config) {
		c.Models.Models = map[string]catalog.Limits{"play:test": {MaxOutputTokens: 2000, Prices: catalog.Prices{Input: 10, Output: 100}}}
		change(&c.Budgets)
	}
}

func (f *fixture) budgets(ctx context.Context, t *testing.T, session string) []*sessionv1.BudgetStatus {
	t.Helper()
	resp, err := sessionv1.NewBudgetServiceClient(f.conn).ListBudgets(ctx, &sessionv1.ListBudgetsRequest{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Budgets
}

func TestAHardLimitEndsTheTurnAndKeepsItsWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, says string
		budget           func(*budget.Config)
		limits           *sessionv1.TurnLimits
		steps            int32
	}{
		{
			name: "a tenant's money", text: "hungry", steps: 1, says: "The tenant default has used $0.114 of $0.16",
			budget: func(c *budget.Config) { c.Tenant.MaxCostUSD = 0.16 },
		},
		{
			name: "a user's tokens, in a window", text: "hungry", steps: 1, says: "Counting restarts at",
			budget: func(c *budget.Config) { c.User.MaxTokens, c.User.Window = 4000, 24*time.Hour },
		},
		{
			name: "a turn's own tokens", text: "hungry", steps: 1, says: "The turn has used 2400 tokens of 4000 tokens",
			budget: func(*budget.Config) {}, limits: &sessionv1.TurnLimits{MaxTokens: 4000},
		},
		{
			name: "an answer that is cut off where the money ends", text: "long", steps: 1, says: "The session has used",
			budget: func(c *budget.Config) { c.Session.MaxCostUSD = 0.16 },
		},
		{
			name: "a session's time", text: "slow", steps: 0, says: "The session has used 100ms of 100ms of its budget. The work",
			budget: func(c *budget.Config) { c.Session.MaxWallTime = 100 * time.Millisecond },
		},
		{
			name: "too little for any call", text: "work", steps: 0, says: "the next model call could need up to",
			budget: func(c *budget.Config) {
				c.Tenants = map[string]budget.Scopes{"default": {Turn: budget.Limits{MaxCostUSD: 0.01}}}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, priced, withPrices(c.budget))
			ctx := t.Context()
			s := f.session(ctx, t)
			end := finished(t, f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: c.text, Limits: c.limits}, nil))
			if end.State != sessionv1.TurnState_TURN_STATE_PARTIAL || end.Error.GetReason() != "BUDGET_EXHAUSTED" || end.Steps != c.steps {
				t.Fatalf("the turn ended %v", end)
			}
			if !strings.Contains(end.Error.Message, c.says) {
				t.Errorf("the message is %q", end.Error.Message)
			}
			if c.steps == 1 && end.FinalText == "" {
				t.Error("the work is not kept")
			}
			for _, b := range f.budgets(ctx, t, s) {
				if b.ReservedTokens != 0 || b.ReservedCostNanoUsd != 0 || b.ReservedWallTime.AsDuration() != 0 {
					t.Errorf("something stays reserved: %v", b)
				}
			}
		})
	}
}

func TestASoftLimitAsksAPerson(t *testing.T) {
	t.Parallel()
	soft := withPrices(func(c *budget.Config) { c.Tenant.MaxCostUSD, c.Tenant.SoftPercent = 10, 1 })
	ask := func(t *testing.T) (*fixture, string, string, *sessionv1.ApprovalRequested) {
		f := start(t, priced, soft)
		s := f.session(t.Context(), t)
		for range 3 { // 9 cents; ten are soft
			f.turn(t.Context(), t, s, "work")
		}
		f.turn(t.Context(), t, s, "refused")
		turn := f.create(t.Context(), t, s, "work")
		asked := f.waitForAsk(t.Context(), t, s)
		if asked.Kind != sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET || asked.CallId != turn.Name[len(s)+len("/turns/"):]+".budget.1" ||
			!strings.Contains(asked.Message, "The tenant default has used $0.105 of $10") || asked.Rule != "tenant cost" {
			t.Fatalf("asked %v", asked)
		}
		return f, s, turn.Name, asked
	}
	resolve := func(f *fixture, s string, asked *sessionv1.ApprovalRequested, approved bool) error {
		_, err := f.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{
			Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: approved, Comment: "too dear",
		})
		return err
	}
	t.Run("who allows it, also after a restart, and is not asked again", func(t *testing.T) {
		f, s, turn, asked := ask(t)
		f.restart(t)
		if err := resolve(f, s, asked, true); err != nil {
			t.Fatal(err)
		}
		end := f.waitForEnd(t.Context(), t, turn)
		if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.Steps != 2 {
			t.Errorf("the turn ended %v", end)
		}
		if b := f.budgets(t.Context(), t, "")[0]; b.UsedCostNanoUsd != 13.5*cent || b.ReservedCostNanoUsd != 0 || b.Limits.SoftPercent != 1 {
			t.Errorf("the budget stands at %v", b)
		}
	})
	t.Run("who refuses it", func(t *testing.T) {
		f, s, turn, asked := ask(t)
		if err := resolve(f, s, asked, false); err != nil {
			t.Fatal(err)
		}
		end := f.waitForEnd(t.Context(), t, turn)
		if end.State != sessionv1.TurnState_TURN_STATE_PARTIAL || end.Error.GetReason() != "BUDGET_REFUSED" || !strings.Contains(end.Error.Message, "too dear") {
			t.Errorf("the turn ended %v", end)
		}
	})
	t.Run("who stops the turn instead", func(t *testing.T) {
		f, s, turn, asked := ask(t)
		f.interrupt(t.Context(), t, &sessionv1.InterruptSessionRequest{Name: s})
		if end := f.waitForEnd(t.Context(), t, turn); end.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED {
			t.Errorf("the turn ended %v", end)
		}
		if err := resolve(f, s, asked, true); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) {
			t.Errorf("an answer after the end: %v", err)
		}
	})
}

func TestABrokenAttemptCountsAsReservedUnlessNothingWasUsed(t *testing.T) {
	t.Parallel()
	f := start(t, priced, withPrices(func(c *budget.Config) { c.Tenant.MaxCostUSD = 10 }))
	ctx := t.Context()
	f.turn(ctx, t, f.session(ctx, t), "refused")
	if b := f.budgets(ctx, t, "")[0]; b.UsedCostNanoUsd != 1.5*cent || b.UsedTokens != 600 {
		t.Errorf("what the provider refused was counted: %v", b)
	}
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "broken")
	b := f.budgets(ctx, t, "")[0]
	if broken := b.UsedCostNanoUsd - 3*cent; broken < 20*cent || b.ReservedCostNanoUsd != 0 { // 2,000 tokens of output and the input
		t.Errorf("the broken attempt is counted with %d: %v", broken, b)
	}
	got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	if u := got.Session.Usage; u.CostNanoUsd != 1.5*cent || u.OutputTokens != 100 {
		t.Errorf("the session's usage holds what is not known: %v", u)
	}
}

func TestBudgetsAboveTheOperatorsAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, priced, withPrices(func(c *budget.Config) {
		c.Turn = budget.Limits{MaxTokens: 5000, MaxCostUSD: 1, MaxWallTime: time.Minute, SoftPercent: 90}
		c.Session = budget.Limits{MaxTokens: 5000}
	}))
	ctx := t.Context()
	s := f.session(ctx, t)
	_, cost := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "work", Limits: &sessionv1.TurnLimits{MaxCostNanoUsd: 101 * cent}})
	_, tokens := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "work", Limits: &sessionv1.TurnLimits{MaxTokens: 5001}})
	_, of := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Budget: &sessionv1.Budget{MaxTokens: 5001}}})
	for name, err := range map[string]error{"cost": cost, "tokens": tokens, "a session's": of} {
		if status.Code(err) != codes.InvalidArgument || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := f.create(ctx, t, s, "work").Limits
	if l.MaxTokens != 5000 || l.MaxCostNanoUsd != 100*cent || l.MaxWallTime.AsDuration() != time.Minute || l.SoftPercent != 90 {
		t.Errorf("the turn's limits are %v", l)
	}
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Budget: &sessionv1.Budget{MaxTokens: 4000}}})
	if err != nil {
		t.Fatal(err)
	}
	if b := f.budgets(ctx, t, resp.Session.Name); len(b) != 1 || b[0].Limits.MaxTokens != 4000 || b[0].Subject != resp.Session.Name {
		t.Errorf("budgets %v", b)
	}
}

// TestTheLedgerIsRightWhateverCommitFails makes each commit of a turn fail in
// turn; `make test` a third of them. With the ledger out of reach no call begins; whatever was reserved is
// settled by the next holder.
func TestTheLedgerIsRightWhateverCommitFails(t *testing.T) {
	t.Parallel()
	var starting sync.Mutex
	run := func(fail func(*faulty.Store)) (calls int, b *sessionv1.BudgetStatus, end *sessionv1.TurnFinished) {
		var db *faulty.Store
		starting.Lock()
		f := startFaulty(t, priced, func(s *faulty.Store) { db = s }, withPrices(func(c *budget.Config) { c.Tenant.MaxCostUSD = 10 }))
		starting.Unlock()
		defer f.stop()
		s := f.session(t.Context(), t)
		fail(db)
		seen, err := (&broken{fixture: f}).follow(t.Context(), &sessionv1.RunTurnRequest{Parent: s, Text: "work"})
		if err != nil || len(seen) == 0 {
			t.Error(err)
			return 0, nil, nil
		}
		return db.Calls(faulty.Commit), f.budgets(t.Context(), t, "")[0], seen[len(seen)-1].GetTurnFinished()
	}
	commits, b, _ := run(func(*faulty.Store) {})
	if b == nil || b.UsedCostNanoUsd != 3*cent {
		t.Fatalf("nothing failed, and the budget stands at %v", b)
	}
	var all errgroup.Group
	all.SetLimit(4)
	for n := 1; n <= commits; n++ {
		for i, when := range []faulty.When{faulty.Before, faulty.After} {
			if sampled() && (2*n+i)%3 != 0 {
				continue
			}
			all.Go(func() error {
				_, b, end := run(func(db *faulty.Store) { db.Fail(faulty.Commit, n, when, nil) })
				if b == nil || end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
					t.Errorf("commit %d, %v: the turn ended %v", n, when, end)
					return nil
				}
				if b.ReservedCostNanoUsd != 0 || b.UsedCostNanoUsd < 3*cent || b.UsedCostNanoUsd > 3*cent+2*25*cent {
					t.Errorf("commit %d, %v: the budget stands at %v", n, when, b)
				}
				return nil
			})
		}
	}
	_ = all.Wait() // what is wrong is reported above
}

// manyTurns is how many turns use up one budget at the same time: a thousand, or few.
func manyTurns() int { return map[bool]int{false: 1000, true: 120}[sampled()] }

func TestManyTurnsNeverExceedATenantsBudget(t *testing.T) {
	t.Parallel()
	tenant := withPrices(func(c *budget.Config) { c.Tenant.MaxCostUSD = 2 })
	patient := func(c *session.Config) { c.LeaseTTL = 30 * time.Second }
	t.Run("on SQLite", func(t *testing.T) {
		t.Parallel()
		useUp(t, start(t, priced, tenant, patient, inMemory(t)))
	})
	t.Run("on two replicas that share one Postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.New(t)
		one := start(t, priced, tenant, patient, func(c *session.Config) { c.DatabaseURL, c.MaxSessions = config.Secret(url), manyTurns()/2 })
		two := one.another()
		two.run(t)
		t.Cleanup(func() { two.stop() })
		useUp(t, one, two)
	})
}

// inMemory keeps SQLite's file in memory where that can be done: a thousand
// turns sync some thousand times, and a busy disk would be all that is measured.
func inMemory(t *testing.T) func(*session.Config) {
	t.Helper()
	return func(c *session.Config) { c.Data = memoryDir(t) }
}

// useUp runs turns on all replicas at the same time and checks what they used.
func useUp(t *testing.T, replicas ...*fixture) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all errgroup.Group
	var mu sync.Mutex
	var cost int64
	ends := map[string]int{}
	for i := range manyTurns() {
		all.Go(func() error {
			f := replicas[i%len(replicas)]
			s, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
			if err != nil {
				return err
			}
			seen, err := (&broken{fixture: f}).follow(ctx, &sessionv1.RunTurnRequest{Parent: s.Session.Name, Text: "work", Limits: &sessionv1.TurnLimits{MaxOutputTokens: 300}})
			if err != nil || len(seen) == 0 {
				return errors.Join(err, fmt.Errorf("session %s", s.Session.Name))
			}
			end := seen[len(seen)-1].GetTurnFinished()
			mu.Lock()
			defer mu.Unlock()
			cost += end.GetUsage().GetCostNanoUsd()
			ends[strings.TrimPrefix(end.GetState().String(), "TURN_STATE_")+" "+end.GetError().GetReason()]++
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	b := replicas[0].budgets(ctx, t, "")[0]
	t.Logf("%v; the turns cost %d, the ledger says %d of %d", ends, cost, b.UsedCostNanoUsd, b.Limits.MaxCostNanoUsd)
	if cost > b.Limits.MaxCostNanoUsd || b.UsedCostNanoUsd > b.Limits.MaxCostNanoUsd || b.UsedCostNanoUsd < cost || b.ReservedCostNanoUsd != 0 {
		t.Errorf("the turns cost %d, and the budget stands at %v", cost, b)
	}
	if ends["COMPLETE "] == 0 || ends["PARTIAL BUDGET_EXHAUSTED"] == 0 || ends["COMPLETE "]+ends["PARTIAL BUDGET_EXHAUSTED"] != manyTurns() {
		t.Errorf("the turns ended %v", ends)
	}
}
