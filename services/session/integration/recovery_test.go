package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

// recovery is something that clients do while a replica dies.
type recovery struct {
	name, scenario string
	// play does what the clients do; it asks whichever replica is alive, and
	// again until it is answered. It returns when the session has come to rest.
	play  func(ctx context.Context, c *cluster) error
	check func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error
	// change is what is different in the configuration, if anything is.
	change func(*session.Config)
}

var recoveries = []recovery{
	{name: "a turn with calls", scenario: worked,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(4), isWorked(log, conversation))
		}},
	{name: "a turn whose answer was cut off in a call", scenario: cutShort,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(1), ends(log, sessionv1.TurnState_TURN_STATE_COMPLETE), looks(conversation, cutShortShape))
		}},
	{name: "a turn that asks a person", scenario: asking,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "write"), c.approve(ctx), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executed(2), ends(log, sessionv1.TurnState_TURN_STATE_COMPLETE))
		}},
	{name: "an interrupt during a call", scenario: slow,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "block"), c.interruptCall(ctx), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, _ []*sessionv1.Message) error {
			return errors.Join(c.executedOnce(), ends(log, sessionv1.TurnState_TURN_STATE_INTERRUPTED))
		}},
	{name: "three messages at once", scenario: "fallback: {steps: [{text: [ok]}]}",
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "one"), c.send(ctx, "two"), c.send(ctx, "three"), c.ended(ctx, 3))
		},
		check: func(_ *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			if got, want := fmt.Sprint(order(log)), "[one two three]"; got != want {
				return fmt.Errorf("the turns ended in the order %s", got)
			}
			if len(conversation) != 6 {
				return fmt.Errorf("the conversation is\n%s", shape(conversation))
			}
			done := sessionv1.TurnState_TURN_STATE_COMPLETE
			return ends(log, done, done, done)
		}},
	{name: "rewinds to checkpoints", scenario: building, play: rewound, check: isRewound},
	{name: "a turn whose view is shortened", scenario: shortened, change: shortensAfterTwoSteps,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "work"), c.ended(ctx, 1))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(3), ends(log, sessionv1.TurnState_TURN_STATE_COMPLETE), isShortened(log, conversation, 7, "automatic"))
		}},
	{name: "a view that is shortened between turns", scenario: shortened, change: shortensAfterTwoSteps,
		play: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.send(ctx, "talk"), c.ended(ctx, 1), c.compact(ctx))
		},
		check: func(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
			return errors.Join(c.executed(1), ends(log, sessionv1.TurnState_TURN_STATE_COMPLETE), isShortened(log, conversation, 3, "requested"))
		}},
}

// fate is what becomes of the first replica.
type fate string

const (
	gone   fate = "gone"
	cutOff fate = "cut off" // it goes on without its database
	frozen fate = "frozen"  // it stops, and wakes up when another has its session
	held   fate = "held up" // one write is, until the session is given up, and nothing else
)

// TestATurnEndsOnceWhereverItsReplicaDies kills the replica that works on a
// session at each of its writes, before and after the write has taken effect,
// or cuts it off, or freezes it. Another one takes over. The clock is simulated,
// so that leases end at once and in the same order every time.
//
// The race detector makes it some fifteen times slower: with it, and in `make test`, one of
// 400 points is taken; `make prove` takes them all.
func TestATurnEndsOnceWhereverItsReplicaDies(t *testing.T) {
	points := 0
	for _, r := range slices.Concat(recoveries, ownCalls, combined, hookDeaths, []recovery{expires}) {
		t.Run(r.name, func(t *testing.T) {
			before := points
			for _, m := range []faulty.Method{faulty.Claim, faulty.Commit, faulty.ReleaseIdle} {
				writes := r.writes(t, m)
				for n := 1; n <= writes; n++ {
					for _, when := range []faulty.When{faulty.Before, faulty.After} {
						for _, f := range []fate{gone, cutOff, frozen, held} {
							if f == held && (m != faulty.Commit || when != faulty.Before) {
								continue
							}
							if points++; sampled() && points%400 != 0 {
								continue
							}
							what := fmt.Sprintf("%s %d, %s, %s", m, n, map[faulty.When]string{faulty.Before: "before", faulty.After: "after"}[when], f)
							synctest.Test(t, func(t *testing.T) { r.die(t, what, m, n, when, f) })
						}
					}
				}
			}
			t.Logf("%d points", points-before)
		})
	}
}

// writes counts the calls of a method when nothing fails.
func (r recovery) writes(t *testing.T, m faulty.Method) (n int) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, r)
		if err := r.play(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.first.stop()
		n = c.dying.Calls(m)
	})
	if m != faulty.Commit {
		n = min(n, 3) // the later ones are polls
	}
	return n
}

func (r recovery) die(t *testing.T, what string, m faulty.Method, n int, when faulty.When, f fate) {
	c := newCluster(t, r)
	var killed <-chan struct{}
	switch f {
	case frozen:
		c.thaw = c.dying.Freeze(m, n, when)
	case held:
		c.thaw = c.dying.Hold(m, n, when)
	default:
		killed = c.dying.Kill(m, n, when)
	}
	if c.thaw != nil {
		defer c.thaw.Resume()
		killed = c.thaw.Reached
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-killed:
			c.takeOver(t, f) //nolint:contextcheck // the replica outlives what has been waited for
		case <-ctx.Done():
		}
	})
	err := r.play(ctx, c)
	if err == nil {
		err = c.examine(ctx, r)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	cancel()
	watch.Wait()
}

// cluster is one database and two replicas, of which the second starts when
// the first has died.
type cluster struct {
	first   *fixture
	dying   *faulty.Store // of the first
	session string
	seen    []*sessionv1.Event // what a client saw on the first
	thaw    *faulty.Pause      // wakes the first up

	mu   sync.Mutex
	live *fixture
}

func newCluster(t *testing.T, r recovery) *cluster {
	t.Helper()
	path := filepath.Join(memoryDir(t), "session.db")
	migrated.Copy(t, path)
	db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &cluster{}
	c.first = prepare(t, r.scenario, func(c *session.Config) {
		c.PollInterval, c.LeaseTTL, c.StreamProgressInterval = time.Second, 8*time.Second, 10*time.Second
		if r.change != nil {
			r.change(c)
		}
	})
	c.first.store = func(context.Context) (store.Store, error) {
		s := faulty.New(staysOpen{db})
		if c.dying == nil {
			c.dying = s
		}
		return s, nil
	}
	c.first.run(t)
	t.Cleanup(func() { c.first.stop() })
	c.live = c.first
	resp, err := c.first.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.session = resp.Session.Name
	return c
}

// memoryDir is a directory in memory, where there is one: for databases of which
// nothing has to last.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fairlead-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// staysOpen is a store that outlives the service that closes it.
type staysOpen struct{ store.Store }

func (staysOpen) Close() error { return nil }

// takeOver starts the second replica.
func (c *cluster) takeOver(t *testing.T, f fate) {
	if f == gone {
		c.first.stop()
	}
	second := c.first.another()
	second.run(t)
	t.Cleanup(func() { second.stop() })
	c.mu.Lock()
	c.live = second
	c.mu.Unlock()
	if c.thaw != nil {
		time.Sleep(c.first.config.LeaseTTL + c.first.config.PollInterval) //nolint:forbidigo // the bubble's clock
		c.thaw.Resume()
	}
}

// ask asks whichever replica is alive, again and again until it is answered.
func (c *cluster) ask(ctx context.Context, what string, do func(f *fixture) error) error {
	for {
		c.mu.Lock()
		f := c.live
		c.mu.Unlock()
		err := do(f)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

func (c *cluster) send(ctx context.Context, text string) error {
	return c.ask(ctx, "send "+text, func(f *fixture) error {
		_, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: c.session, Text: text, RequestId: "send-" + text})
		return err
	})
}

// follow reads the log until it shows what is looked for. What the first
// replica showed is kept.
func (c *cluster) follow(ctx context.Context, until func(*sessionv1.Event) bool) error {
	return c.ask(ctx, "follow", func(f *fixture) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: c.session})
		for err == nil {
			var r *sessionv1.StreamEventsResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			e := r.GetEvent()
			if e != nil && f == c.first {
				c.seen = append(c.seen, e)
			}
			if e != nil && until(e) {
				return nil
			}
		}
		return err
	})
}

// ended waits until n turns have ended.
func (c *cluster) ended(ctx context.Context, n int) error {
	turns := map[string]bool{}
	return c.follow(ctx, func(e *sessionv1.Event) bool {
		if e.GetTurnFinished() != nil {
			turns[e.Turn] = true
		}
		return len(turns) == n
	})
}

// approve waits for the question and says yes.
func (c *cluster) approve(ctx context.Context) error {
	var asked *sessionv1.ApprovalRequested
	if err := c.follow(ctx, func(e *sessionv1.Event) bool { asked = e.GetApprovalRequested(); return asked != nil }); err != nil {
		return err
	}
	return c.ask(ctx, "approve", func(f *fixture) error {
		_, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{
			Parent: c.session, CallId: asked.CallId, Digest: asked.Digest, Approved: true, RequestId: "approve",
		})
		return err
	})
}

// callRuns waits until a call that runs until it is stopped has begun.
func (c *cluster) callRuns(ctx context.Context) error {
	select {
	case <-c.first.peers.blocked:
		return nil
	case <-ctx.Done():
		return errors.New("no call began")
	}
}

// interruptCall stops the turn as soon as one of its calls runs.
func (c *cluster) interruptCall(ctx context.Context) error {
	if err := c.callRuns(ctx); err != nil {
		return err
	}
	return c.ask(ctx, "interrupt", func(f *fixture) error {
		_, err := f.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: c.session, RequestId: "stop"})
		return err
	})
}

// examine reads what is left and checks it.
func (c *cluster) examine(ctx context.Context, r recovery) error {
	var log *sessionv1.ListEventsResponse
	var conversation *sessionv1.ListMessagesResponse
	err := c.ask(ctx, "read the log", func(f *fixture) (err error) {
		if log, err = f.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: c.session, PageSize: 1000}); err != nil {
			return err
		}
		conversation, err = f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: c.session, PageSize: 1000})
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(tiles(log.Events), c.kept(log.Events), r.check(c, log.Events, conversation.Messages))
}

// kept checks that what a client saw on the first replica is in the log.
func (c *cluster) kept(log []*sessionv1.Event) error {
	at := map[int64]*sessionv1.Event{}
	for _, e := range log {
		at[e.Seq] = e
	}
	for _, e := range c.seen {
		if !proto.Equal(e, at[e.Seq]) {
			return fmt.Errorf("a client saw %v, and the log has %v", e, at[e.Seq])
		}
	}
	return nil
}

// executed checks that so many calls were executed, each once.
func (c *cluster) executed(n int) error {
	c.first.peers.mu.Lock()
	got := len(c.first.peers.executed)
	c.first.peers.mu.Unlock()
	if got != n {
		return fmt.Errorf("%d calls were executed, want %d", got, n)
	}
	return c.executedOnce()
}

func (c *cluster) executedOnce() error {
	c.first.peers.mu.Lock()
	defer c.first.peers.mu.Unlock()
	for id, n := range c.first.peers.executed {
		if n != 1 {
			return fmt.Errorf("call %s was executed %d times", id, n)
		}
	}
	return nil
}

// ends checks that the turns ended once each, in these states.
func ends(log []*sessionv1.Event, want ...sessionv1.TurnState) error {
	var got []sessionv1.TurnState
	for _, e := range log {
		if f := e.GetTurnFinished(); f != nil {
			got = append(got, f.State)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("the turns ended %v, want %v: %s", got, want, names(log))
	}
	return nil
}
