package placement

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
)

// join is a server that is about to start, on a database that others use.
type join struct {
	*Nodes
	store *postgres.Store
}

func joining(t *testing.T, self store.Member, answers map[string]string) join {
	t.Helper()
	s, err := postgres.Open(t.Context(), pgtest.New(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	group := &Group{
		Self: self, Store: s, Learn: func(string, string) error { return nil },
		Ask: func(_ context.Context, address string) (string, error) {
			if name, ok := answers[address]; ok {
				return name, nil
			}
			return "", grpc.ErrServerStopped
		},
	}
	here := &sandboxes{name: self.Name}
	return join{New(Config{Group: group, LostAfter: time.Minute, Sandbox: here, Store: s, Log: slog.New(slog.DiscardHandler)}), s}
}

// runs has another server beat until the test ends.
func (j join) runs(t *testing.T, m store.Member) {
	t.Helper()
	if err := j.store.Enlist(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		for pause(ctx, 50*time.Millisecond) == nil {
			_ = j.store.Beat(ctx, m)
		}
	})
	t.Cleanup(func() { stop(); beating.Wait() })
}

func TestAServerThatOthersCannotReachDoesNotStart(t *testing.T) {
	self := store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}
	for _, c := range []struct {
		name  string
		other store.Member
		want  string // empty: it starts
	}{
		{"the other is on another machine's loopback", store.Member{Name: "other", Address: "127.0.0.1:2", Instance: "j"}, "set peer on both servers"},
		{"the other is here", store.Member{Name: "other", Address: "127.0.0.1:3", Instance: "j"}, ""},
		{"another one has the port of the other now", store.Member{Name: "other", Address: "127.0.0.1:4", Instance: "j"}, "set peer on both servers"},
		{"the other is on another machine, and this one on loopback", store.Member{Name: "other", Address: "192.0.2.1:3", Instance: "j"}, "Set peer to an address"},
		{"the other cannot be reached now", store.Member{Name: "other", Address: "192.0.2.1:4", Instance: "j"}, ""},
		{"one of this name runs", store.Member{Name: "self", Address: "127.0.0.1:5", Instance: "j"}, "is already running"},
		{"one of this name has died", store.Member{Name: "self", Address: "127.0.0.1:6", Instance: "j"}, ""},
		{"one of this name had this address", store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "j"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := joining(t, self, map[string]string{"127.0.0.1:3": "other", "192.0.2.1:3": "other", "127.0.0.1:4": "third", "127.0.0.1:5": "self"})
			j.runs(t, c.other)
			err := j.CheckStart(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAServerStartsBesideOneThatStoppedOrDied(t *testing.T) {
	t.Parallel()
	self := store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}
	for name, address := range map[string]string{"stopped": "", "died": "127.0.0.1:2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := joining(t, self, nil)
			if err := j.store.Enlist(t.Context(), store.Member{Name: "other", Address: address, Instance: "j"}); err != nil {
				t.Fatal(err)
			}
			if err := j.CheckStart(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAServerStopsWhenAnotherHasItsName(t *testing.T) {
	t.Parallel()
	j := joining(t, store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}, nil)
	done := j.serves(t, t.Context())
	if err := j.store.Enlist(t.Context(), store.Member{Name: "self", Address: "127.0.0.1:2", Instance: "j"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "sandbox.node") {
		t.Errorf("got %v", err)
	}
	if m := j.members(t); len(m) != 1 || m[0].Address != "127.0.0.1:2" {
		t.Errorf("the other one is %+v", m)
	}
}

// serves runs the server and waits until it is listed.
func (j join) serves(t *testing.T, ctx context.Context) (done <-chan error) { //nolint:revive // the test's context comes second
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	for len(j.members(t)) == 0 { //nolint:contextcheck // it reads also after ctx has ended
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	return ended
}

func (j join) members(t *testing.T) []store.Member {
	t.Helper()
	all, err := j.store.Members(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAServerIsListedOnlyWhileItServesOrHasWorkspaces(t *testing.T) {
	t.Parallel()
	k := store.Key{Tenant: "t", Session: "s"}
	for name, c := range map[string]struct {
		begin func(j join) error
		left  int
	}{
		"it has nothing": {func(join) error { return nil }, 0},
		"it has workspace": {func(j join) error {
			_, err := j.store.PlaceNew(t.Context(), k, store.Place{Node: "self", Generation: 1})
			return err
		}, 1},
		"it has a copy that waits to be deleted": {func(j join) error {
			return j.store.PutJobs(t.Context(), []store.Job{VacateJob(k, store.Place{Node: "self", Generation: 1})})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := joining(t, store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}, nil)
			if err := j.CheckStart(t.Context()); err != nil || len(j.members(t)) != 0 {
				t.Fatalf("before it serves: %v, %v", j.members(t), err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := j.serves(t, ctx)
			if err := c.begin(j); err != nil {
				t.Fatal(err)
			}
			stop()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := j.members(t); len(got) != c.left || len(got) == 1 && got[0].Address != "" {
				t.Errorf("it leaves %+v", got)
			}
		})
	}
}

func TestASilentServerWithoutWorkspacesCausesNoWarning(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	n := New(Config{
		Group: &Group{Self: store.Member{Name: "self"}}, LostAfter: time.Nanosecond,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	silent := func(empty bool) string {
		log.Reset()
		n.mu.Lock()
		n.count([]store.Member{{Name: "self", Empty: true}})
		n.count([]store.Member{{Name: "other", Address: "127.0.0.1:2", Silent: time.Hour, Empty: empty}})
		n.mu.Unlock()
		n.note(t.Context(), "other", net.ErrClosed)
		n.note(t.Context(), "other", net.ErrClosed)
		if got := n.State("other"); got != Lost {
			t.Errorf("its state is %d", got)
		}
		return log.String()
	}
	if got := silent(true); got != "" {
		t.Errorf("one without workspaces: %s", got)
	}
	if got := silent(false); !strings.Contains(got, "WARN") || !strings.Contains(got, "ERROR") {
		t.Errorf("one with workspaces: %q", got)
	}
}

// A server that beats is not lost, however long it cannot be reached: it has the files.
func TestAServerThatBeatsIsNotLost(t *testing.T) {
	t.Parallel()
	j := joining(t, store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}, nil)
	j.LostAfter = 10 * time.Millisecond
	beats := []store.Member{{Name: "other", Address: "127.0.0.1:2", Silent: time.Second}}
	silent := []store.Member{{Name: "other", Address: "127.0.0.1:2", Silent: time.Hour}}
	away := func(members []store.Member) State {
		j.mu.Lock()
		j.count(members)
		j.mu.Unlock()
		j.note(t.Context(), "other", net.ErrClosed)
		if err := pause(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		j.note(t.Context(), "other", net.ErrClosed)
		return j.State("other")
	}
	if got := away(beats); got != Silent {
		t.Errorf("while it beats its state is %d", got)
	}
	if got := away(silent); got != Lost {
		t.Errorf("when it is silent its state is %d", got)
	}
	if got := away(beats); got != Silent {
		t.Errorf("when it beats again its state is %d", got)
	}
}

// A server knows nothing of a time in which the database refused writes.
func TestNoServerIsLostForAnOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	j := joining(t, store.Member{Name: "self", Address: "127.0.0.1:1", Instance: "i"}, nil)
	j.LostAfter = time.Hour
	other := []store.Member{{Name: "other", Address: "127.0.0.1:2", Silent: 2 * time.Hour}}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count(other)
	j.states["other"].since = time.Now().Add(-2 * time.Hour)
	j.Group.met = time.Now().Add(-2 * time.Hour)
	j.count(other)
	if j.age(t.Context(), "other", j.states["other"]); j.states["other"].lost {
		t.Error("it is lost at once")
	}
}

// stopping is a store of members whose server is stopped while it beats.
type stopping struct {
	*postgres.Store // nil: no other method is called
	stop            context.CancelFunc
	cut             error // why the beat was cut off
}

func (s *stopping) Beat(ctx context.Context, _ store.Member) error {
	s.stop()
	s.cut = ctx.Err()
	return nil
}

func (*stopping) Members(context.Context) ([]store.Member, error) { return nil, nil }

// A beat that the client cuts off may still reach the database, after the server has left.
func TestTheStopOfAServerCutsNoBeatOff(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	members := &stopping{stop: stop}
	self := store.Member{Name: "self"}
	n := New(Config{
		Group: &Group{Self: self, Store: members}, LostAfter: time.Minute,
		Sandbox: &sandboxes{name: self.Name}, Log: slog.New(slog.DiscardHandler),
	})
	if err := n.meet(ctx); err != nil || members.cut != nil {
		t.Errorf("the server met the others with %v, and its beat ended with %v", err, members.cut)
	}
}
