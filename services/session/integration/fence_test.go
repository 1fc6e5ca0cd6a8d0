package integration

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// TestATakeoverIsToldToToolsAndTheSandboxBeforeAnyCall freezes a replica after each of
// the first commits of a turn, until another one has taken over.
func TestATakeoverIsToldToToolsAndTheSandboxBeforeAnyCall(t *testing.T) {
	r := recovery{scenario: worked}
	for _, tell := range []struct {
		name string
		away map[string]int
	}{
		{"both answer", nil},
		{"tools is away for a moment", map[string]int{"FenceSession": 2}},
		{"the sandbox is away for a moment", map[string]int{"FenceWorkspace": 2}},
	} {
		t.Run(tell.name, func(t *testing.T) {
			for n := 1; n <= 6; n++ {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, r)
					for what, times := range tell.away {
						c.first.peers.broken[what] = times
					}
					c.thaw = c.dying.Freeze(faulty.Commit, n, faulty.After)
					defer c.thaw.Resume()
					if err := c.send(t.Context(), "work"); err != nil {
						t.Fatal(err)
					}
					<-c.thaw.Reached
					stopped := time.Now()
					c.first.peers.mu.Lock()
					c.first.peers.news = 0
					c.first.peers.mu.Unlock()
					c.takeOver(t, frozen)
					if err := c.ended(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
					turns, err := c.live.ListTurns(t.Context(), &sessionv1.ListTurnsRequest{Parent: c.session})
					if err != nil {
						t.Fatal(err)
					}
					if !turns.Turns[0].EndTime.AsTime().After(stopped) {
						return // the commit was the last one of the turn, and nothing is taken over
					}
					p := c.first.peers
					p.mu.Lock()
					defer p.mu.Unlock()
					slices.Sort(p.fences)
					if !slices.Equal(p.fences, []string{"sandbox " + c.session, "tools " + c.session}) || p.news > 0 {
						t.Errorf("frozen after commit %d: of the takeover were told %q, and %d calls brought a new epoch", n, p.fences, p.news)
					}
				})
			}
		})
	}
}

// TestATakeoverWaitsNotLongForToolsThatAreAway: it goes on beside the turn.
func TestATakeoverWaitsNotLongForToolsThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, recovery{scenario: twoSteps})
		p := c.first.peers
		p.broken["FenceSession"] = 5 // for some three seconds
		killed := c.dying.Kill(faulty.Commit, 2, faulty.After)
		if err := c.send(t.Context(), "work"); err != nil {
			t.Fatal(err)
		}
		<-killed
		c.takeOver(t, cutOff)
		time.Sleep(c.first.config.LeaseTTL + c.first.config.PollInterval + 1500*time.Millisecond) //nolint:forbidigo // the bubble's clock
		select {
		case call := <-p.blocked:
			p.mu.Lock()
			if len(p.fences) != 1 {
				t.Errorf("a call was made, and of the takeover were told %q", p.fences)
			}
			p.mu.Unlock()
			time.Sleep(5 * time.Second) //nolint:forbidigo // the bubble's clock
			p.mu.Lock()
			if len(p.fences) != 2 {
				t.Errorf("later, of the takeover were told %q", p.fences)
			}
			p.mu.Unlock()
			p.release(call)
		default:
			t.Error("the turn waits for tools to be told")
		}
		if err := c.ended(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}

// TestASessionThatWasGivenBackIsTakenUpWithoutAFence: neither one that was idle or
// waited in the queue, nor one whose replica stops.
func TestASessionThatWasGivenBackIsTakenUpWithoutAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, recovery{scenario: worked})
		for i, text := range []string{"work", "more"} {
			if err := c.send(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if err := c.ended(t.Context(), i+1); err != nil {
				t.Fatal(err)
			}
		}
		c.takeOver(t, gone)
		if err := c.send(t.Context(), "again"); err != nil {
			t.Fatal(err)
		}
		if err := c.ended(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		p := c.first.peers
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.fences) > 0 {
			t.Errorf("of a takeover were told %q", p.fences)
		}
	})
}
