package integration

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// leave makes all of a method's calls fail until they are as many.
func (p *peers) leave(times int, methods ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range methods {
		p.broken[m] = times
	}
}

const forEver = 1 << 30

// TestATurnOutlastsPeersThatAreAway lets them be away for ten minutes, wherever in the
// turn, and then come back.
func TestATurnOutlastsPeersThatAreAway(t *testing.T) {
	for name, methods := range map[string][]string{
		"the list of tools": {"ListTools"}, "the workspace": {"EnsureWorkspace"}, "the calls": {"Bash", "Read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, recovery{scenario: worked})
				p := c.first.peers
				p.leave(forEver, methods...)
				if err := c.send(t.Context(), "work"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
				if got := c.first.states(t.Context(), t, c.session); got != "RUNNING" {
					t.Fatalf("while they are away the turn is %s", got)
				}
				warned := c.warnings(t)
				if warned != 1 && name != "the calls" || warned == 0 { // each call tells of its own
					t.Errorf("%d warnings say what is waited for", warned)
				}
				p.leave(0, methods...)
				if err := c.ended(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if err := ends(c.first.log(t.Context(), t, c.session), sessionv1.TurnState_TURN_STATE_COMPLETE); err != nil {
					t.Error(err)
				}
				if err := c.executed(4); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// warnings counts the events that say what the turn waits for.
func (c *cluster) warnings(t *testing.T) (n int) {
	for _, e := range c.first.log(t.Context(), t, c.session) {
		if w := e.GetWarning(); w.GetReason() == "PEER_AWAY" || w.GetReason() == "TOOLS_RETRY" {
			n++
		}
	}
	return n
}

// TestAnInterruptWaitsForToolsThatIsAway: the call is known to be stopped when tools is
// back, and unknown only when no peer came back for longer than the operator lets a
// session wait.
func TestAnInterruptWaitsForToolsThatIsAway(t *testing.T) {
	for _, tc := range []struct {
		name string
		away time.Duration
		want sessionv1.ToolOutcome
	}{
		{"and comes back", 5 * time.Minute, sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED},
		{"and does not come back", time.Hour, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, recovery{scenario: twoSteps})
				ctx, p := t.Context(), c.first.peers
				if err := c.send(ctx, "work"); err != nil {
					t.Fatal(err)
				}
				call := <-p.blocked
				p.leave(forEver, "CancelCall")
				if _, err := c.first.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: c.session}); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
				if got := c.first.states(ctx, t, c.session); got != "RUNNING" || c.warnings(t) != 1 {
					t.Errorf("a minute later the turn is %s, with %d warnings", got, c.warnings(t))
				}
				time.AfterFunc(tc.away-time.Minute, func() { p.leave(0, "CancelCall") })
				if err := c.ended(ctx, 1); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took > min(tc.away, c.first.config.PeerPatience)+10*time.Second {
					t.Errorf("the session was free after %v", took)
				}
				log := c.first.log(ctx, t, c.session)
				if err := ends(log, sessionv1.TurnState_TURN_STATE_INTERRUPTED); err != nil {
					t.Error(err)
				}
				for _, e := range log {
					if f := e.GetToolCallFinished(); f != nil && (f.CallId != call || f.Outcome != tc.want) {
						t.Errorf("the call ended %v", f)
					}
				}
				if !strings.Contains(names(log), "tool_call.finished") {
					t.Errorf("the call has no end: %s", names(log))
				}
				if tc.want == sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
					p.release(call) // or its stream stays open
				}
			})
		})
	}
}
