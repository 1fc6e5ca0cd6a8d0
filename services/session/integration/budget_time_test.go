package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// timed has turns that take their time, which is a simulated clock's.
const timed = `
turns:
  - when: work
    steps:
      - text: [Looking]
        pause: 3s
        tools: [{name: Bash, input: {command: ls}}]
      - text: [Done]
        pause: 3s
  - when: think
    steps: [{text: [Done], pause: 45s}]
  - when: block
    steps:
      - text: [Waiting]
        pause: 5s
        tools: [{name: Block, input: {}}]
      - text: [Done]
  - when: write
    steps:
      - text: [Writing]
        pause: 5s
        tools: [{name: Write, input: {file_path: a}}]
      - text: [Done]
        pause: 5s
`

// tenantTime gives the tenant so much time, and its turns so long to wait for it.
func tenantTime(most, wait time.Duration, soft int) func(*session.Config) {
	return func(c *session.Config) {
		c.Budgets.Tenant.MaxWallTime, c.Budgets.Tenant.SoftPercent, c.Budgets.Wait = most, soft, wait
		c.PollInterval, c.LeaseTTL, c.StreamProgressInterval = time.Second, 8*time.Second, 10*time.Second
	}
}

// onTime runs a test on a service whose clock is simulated.
func onTime(t *testing.T, change func(*session.Config), test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, start(t, timed, inMemory(t), change)) })
}

// timeUsed is the tenant's time that the ledger says was used; nothing may be reserved.
func (f *fixture) timeUsed(t *testing.T) time.Duration {
	t.Helper()
	b := f.budgets(t.Context(), t, "")[0]
	if b.ReservedWallTime.AsDuration() != 0 {
		t.Errorf("time stays reserved: %v", b)
	}
	return b.UsedWallTime.AsDuration()
}

// TestTurnsBesideEachOtherNeverExceedATenantsTime runs turns at the same time on
// one small budget. What they used is measured by the clock, not by the ledger
// alone: from a turn's first step to its end.
func TestTurnsBesideEachOtherNeverExceedATenantsTime(t *testing.T) {
	const limit, long = time.Minute, 6 * time.Second
	turns := map[bool]int{false: 60, true: 20}[sampled()]
	for name, tt := range map[string]struct {
		wait     time.Duration
		complete int // at least
	}{
		"turns that wait for what others give back use nearly all of it":  {time.Hour, int(limit/long) - 1},
		"without waiting those that find everything reserved end at once": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			onTime(t, tenantTime(limit, tt.wait, 0), func(t *testing.T, f *fixture) {
				ends, worked := f.manyAtOnce(t, turns)
				used := f.timeUsed(t)
				t.Logf("%v; the turns took %v, the ledger says %v of %v", ends, worked, used, limit)
				if worked > limit || used > limit || used < worked {
					t.Errorf("the turns took %v, and the ledger says %v of %v", worked, used, limit)
				}
				if tt.wait > 0 && used < limit-time.Second {
					t.Errorf("the budget is not used up: %v", used)
				}
				if n := ends["COMPLETE "]; n < tt.complete || n+ends["PARTIAL BUDGET_EXHAUSTED"] != turns {
					t.Errorf("the turns ended %v", ends)
				}
			})
		})
	}
}

// manyAtOnce runs turns at the same time and tells how they ended, and how long
// they took together.
func (f *fixture) manyAtOnce(t *testing.T, turns int) (ends map[string]int, worked time.Duration) {
	t.Helper()
	var all errgroup.Group
	streams := make([][]*sessionv1.Event, turns)
	for i := range streams {
		all.Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			s, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
			if err != nil {
				return err
			}
			streams[i], err = (&broken{fixture: f}).follow(ctx, &sessionv1.RunTurnRequest{Parent: s.Session.Name, Text: "work"})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	ends = map[string]int{}
	for _, events := range streams {
		end := finished(t, events)
		ends[strings.TrimPrefix(end.State.String(), "TURN_STATE_")+" "+end.Error.GetReason()]++
		for _, e := range events {
			if e.GetStepStarted() != nil {
				worked += events[len(events)-1].Time.AsTime().Sub(e.Time.AsTime())
				break
			}
		}
	}
	return ends, worked
}

func TestTheTimeOfABudgetIsHeldAndGivenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*session.Config)
		play   func(t *testing.T, f *fixture)
		used   time.Duration
	}{
		"a call longer than a slice goes on": {tenantTime(time.Hour, 0, 0), func(t *testing.T, f *fixture) {
			t.Helper()
			f.endsAs(t, f.create(t.Context(), t, f.session(t.Context(), t), "think"), "COMPLETE ")
		}, 45 * time.Second},
		"a call is stopped when the time is up, and its work kept": {tenantTime(40*time.Second, 0, 0), func(t *testing.T, f *fixture) {
			t.Helper()
			end := f.endsAs(t, f.create(t.Context(), t, f.session(t.Context(), t), "block"), "PARTIAL BUDGET_EXHAUSTED")
			if end.FinalText != "Waiting" || !strings.Contains(end.Error.Message, "The tenant default has used 40s of 40s of its budget. The work so far is kept.") {
				t.Errorf("the turn ended %v", end)
			}
		}, 40 * time.Second},
		"time in which a turn waits for a person does not count": {tenantTime(time.Minute, 0, 0), func(t *testing.T, f *fixture) {
			t.Helper()
			s := f.session(t.Context(), t)
			turn := f.create(t.Context(), t, s, "write")
			asked := f.waitForAsk(t.Context(), t, s)
			time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
			f.approve(t, s, asked)
			f.endsAs(t, turn, "COMPLETE ")
		}, 10 * time.Second},
		"at a soft limit a person is asked before the next step": {tenantTime(time.Minute, 0, 5), func(t *testing.T, f *fixture) {
			t.Helper()
			s := f.session(t.Context(), t)
			f.endsAs(t, f.create(t.Context(), t, s, "work"), "COMPLETE ")
			turn := f.create(t.Context(), t, s, "work")
			asked := f.waitForAsk(t.Context(), t, s)
			if asked.Rule != "tenant wall time" || !strings.Contains(asked.Message, "has used 6s of 1m0s") {
				t.Errorf("asked %v", asked)
			}
			time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
			f.approve(t, s, asked)
			f.endsAs(t, turn, "COMPLETE ")
		}, 12 * time.Second},
		"a turn that is stopped gives back what it has not used": {tenantTime(time.Minute, 0, 0), func(t *testing.T, f *fixture) {
			t.Helper()
			s := f.session(t.Context(), t)
			turn := f.create(t.Context(), t, s, "think")
			time.Sleep(7 * time.Second) //nolint:forbidigo // the bubble's clock
			f.interrupt(t.Context(), t, &sessionv1.InterruptSessionRequest{Name: s})
			f.endsAs(t, turn, "INTERRUPTED INTERRUPTED")
		}, 7 * time.Second},
		"a budget that bounds no time counts none": {func(c *session.Config) { c.Budgets.Tenant.MaxTokens = 1_000_000 }, func(t *testing.T, f *fixture) {
			t.Helper()
			f.endsAs(t, f.create(t.Context(), t, f.session(t.Context(), t), "work"), "COMPLETE ")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onTime(t, tt.change, func(t *testing.T, f *fixture) {
				tt.play(t, f)
				if used := f.timeUsed(t); used < tt.used || used > tt.used+time.Second/2 {
					t.Errorf("the ledger says %v, want %v", used, tt.used)
				}
			})
		})
	}
}

func (f *fixture) approve(t *testing.T, s string, asked *sessionv1.ApprovalRequested) {
	t.Helper()
	if _, err := f.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{Parent: s, CallId: asked.CallId, Digest: asked.Digest, Approved: true}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) endsAs(t *testing.T, turn *sessionv1.Turn, want string) *sessionv1.TurnFinished {
	t.Helper()
	var end *sessionv1.TurnFinished
	for end == nil { // a look each minute: the clock is simulated, and followers give up
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		session, _, _ := strings.Cut(turn.Name, "/turns/")
		for _, e := range f.log(t.Context(), t, session) {
			if e.Turn == turn.Name && e.GetTurnFinished() != nil {
				end = e.GetTurnFinished()
			}
		}
	}
	if got := strings.TrimPrefix(end.State.String(), "TURN_STATE_") + " " + end.Error.GetReason(); got != want {
		t.Fatalf("the turn ended %v", end)
	}
	return end
}

// TestTimeThatADeadReplicaHadReservedCountsAsUsed kills a replica in the middle of
// a model call; the used part of its slice is unknown.
func TestTimeThatADeadReplicaHadReservedCountsAsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, recovery{scenario: timed, change: tenantTime(time.Hour, 0, 0)})
		if err := c.send(t.Context(), "think"); err != nil {
			t.Fatal(err)
		}
		if err := c.follow(t.Context(), func(e *sessionv1.Event) bool { return e.GetStepStarted() != nil }); err != nil {
			t.Fatal(err)
		}
		<-c.dying.Kill(faulty.Commit, 1, faulty.Before) // when it renews the slice
		c.takeOver(t, cutOff)
		if err := c.ended(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if used := c.live.timeUsed(t); used != 65*time.Second { // a slice of 20 s, and the call anew
			t.Errorf("the ledger says %v", used)
		}
	})
}

// TestASessionsOwnTimeIsReserved has a session that allows itself less than its tenant.
func TestASessionsOwnTimeIsReserved(t *testing.T) {
	onTime(t, tenantTime(time.Hour, 0, 0), func(t *testing.T, f *fixture) {
		resp, err := f.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
			Budget: &sessionv1.Budget{MaxWallTime: durationpb.New(8 * time.Second)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.endsAs(t, f.create(t.Context(), t, resp.Session.Name, "work"), "COMPLETE ")
		end := f.endsAs(t, f.create(t.Context(), t, resp.Session.Name, "work"), "PARTIAL BUDGET_EXHAUSTED")
		if !strings.Contains(end.Error.Message, "The session has used 8s of 8s") {
			t.Errorf("the turn ended %v", end)
		}
		for _, b := range f.budgets(t.Context(), t, resp.Session.Name) {
			if got := fmt.Sprint(b.UsedWallTime.AsDuration()); got != "8s" {
				t.Errorf("the %s used %s", b.Scope, got)
			}
		}
	})
}

// TestABurstOnASmallBudgetLosesNothing has turns at the same time that fit into a
// budget, though what their calls may use at most does not.
func TestABurstOnASmallBudgetLosesNothing(t *testing.T) {
	const turns = 30 // of 3 cents each; a call reserves more than 20
	for name, tt := range map[string]struct {
		wait     time.Duration
		complete func(n int) bool
	}{
		"each waits for what others give back": {time.Hour, func(n int) bool { return n == turns }},
		"without waiting most are denied":      {0, func(n int) bool { return n < turns/2 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, priced, inMemory(t), withPrices(func(c *budget.Config) { c.Tenant.MaxCostUSD, c.Wait = 1.2, tt.wait }))
				ends, _ := f.manyAtOnce(t, turns)
				b := f.budgets(t.Context(), t, "")[0]
				if n := ends["COMPLETE "]; !tt.complete(n) || n+ends["PARTIAL BUDGET_EXHAUSTED"] != turns || b.ReservedCostNanoUsd != 0 || b.UsedCostNanoUsd > b.Limits.MaxCostNanoUsd {
					t.Errorf("the turns ended %v, the budget stands at %v", ends, b)
				}
			})
		})
	}
}

// TestATurnThatWaitsForABudgetCanBeStopped interrupts it, and hands it over.
func TestATurnThatWaitsForABudgetCanBeStopped(t *testing.T) {
	onTime(t, tenantTime(10*time.Second, time.Hour, 0), func(t *testing.T, f *fixture) {
		first := f.create(t.Context(), t, f.session(t.Context(), t), "work")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		s := f.session(t.Context(), t)
		stopped := f.create(t.Context(), t, s, "work")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		f.interrupt(t.Context(), t, &sessionv1.InterruptSessionRequest{Name: s})
		f.endsAs(t, stopped, "INTERRUPTED INTERRUPTED")
		f.endsAs(t, first, "COMPLETE ")
		if used := f.timeUsed(t); used != 6*time.Second {
			t.Errorf("the ledger says %v", used)
		}
	})
	onTime(t, tenantTime(8*time.Second, time.Hour, 0), func(t *testing.T, f *fixture) {
		f.create(t.Context(), t, f.session(t.Context(), t), "think")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		waits := f.create(t.Context(), t, f.session(t.Context(), t), "work")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		begun := time.Now()
		f.restart(t)
		if d := time.Since(begun); d > f.config.StopGrace+time.Second {
			t.Errorf("the replica took %v to stop", d)
		}
		f.endsAs(t, waits, "PARTIAL BUDGET_EXHAUSTED")
	})
}
