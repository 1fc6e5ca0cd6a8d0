package network

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

type silent struct{}

func (silent) Started(context.Context, box.Call, []string) func(box.Outcome) {
	return func(box.Outcome) {}
}

func newNetwork(t *testing.T) *Network {
	t.Helper()
	p, err := egress.New(egress.Options{Ceiling: []egress.Rule{{Host: "*.example.com"}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return New(p)
}

var key = box.Key{Tenant: "t", Session: "s"}

// start has the network know of a command, until what it returns is called.
func start(n *Network, call string) func() {
	ended := n.Observer(silent{}).Started(context.Background(), box.Call{Key: key, ID: call}, []string{"true"})
	return func() { ended(box.Outcome{}) }
}

var begun = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func event(host string, o egress.Outcome) egress.Event {
	return egress.Event{Start: begun, Host: host, Port: 443, Outcome: o, Sent: 1, Received: 2, Duration: time.Second}
}

func TestEachConnectionIsToldWithItsCommand(t *testing.T) {
	n := newNetwork(t)
	defer start(n, "one")()
	defer start(n, "two")()
	for _, x := range []struct {
		exec string
		e    egress.Event
	}{
		{"one", event("a", egress.Done)}, {"one", event("a", egress.Done)}, {"one", event("a", egress.Denied)}, {"two", event("b", egress.Done)},
		{"", event("last", egress.Done)}, {"nobody", event("last", egress.Done)}, {"one", event("", egress.Opened)},
	} {
		_, end := n.begin(key, x.exec)
		end(x.e)
	}
	want := map[string][]box.Use{
		"one": {
			{Host: "a", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "a", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "a", Port: 443, Outcome: "denied", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
		},
		"two": {
			{Host: "b", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "last", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "last", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
		},
		"three": nil,
	}
	for call, uses := range want {
		if d := cmp.Diff(uses, n.Uses(key, call), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", call, d)
		}
	}
}

// A program makes many harmless connections before the one that it would rather not have told.
func TestManyConnectionsHideNoOther(t *testing.T) {
	n := newNetwork(t)
	defer start(n, "one")()
	for i := range 1000 {
		_, told := n.begin(key, "one")
		if i == 900 {
			told(event("169.254.169.254", egress.Denied))
			continue
		}
		told(event("a", egress.Done))
	}
	if uses := n.Uses(key, "one"); len(uses) != maxUses+1 || uses[maxUses].Host != "169.254.169.254" || uses[maxUses].Connections != 1 {
		t.Errorf("%d uses, the last %+v", len(uses), uses[len(uses)-1])
	}
}

func TestManyDestinationsAreAddedUp(t *testing.T) {
	n := newNetwork(t)
	end := start(n, "one")
	tell := func(host string, o egress.Outcome) {
		_, told := n.begin(key, "one")
		told(event(host, o))
	}
	tell("a", egress.Done)
	for i := range 998 {
		tell(strconv.Itoa(i), egress.Denied)
	}
	tell("a", egress.Done)
	uses := n.Uses(key, "one")
	var all int64
	for _, u := range uses {
		all += u.Connections
	}
	if len(uses) != maxDestinations+1 || all != 1000 || uses[0].Connections != 2 || uses[maxDestinations].Host != "" {
		t.Errorf("%d uses of %d connections, the last %+v", len(uses), all, uses[len(uses)-1])
	}
	end()
	if len(n.running) != 0 {
		t.Errorf("it remembers %v", n.running)
	}
	if ctx, told := n.begin(key, "one"); ctx != nil || told != nil {
		t.Error("somebody is told of a connection of no command")
	}
}

func TestACommandsEndWaitsForItsConnectionsButNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer start(n, "one")()
		_, told := n.begin(key, "one")
		time.AfterFunc(100*time.Millisecond, func() { told(event("a", egress.Done)) })
		if uses := n.Uses(key, "one"); len(uses) != 1 {
			t.Errorf("told %v before the connection's end", uses)
		}
		n.begin(key, "one") // never ends
		before := time.Now()
		if n.Uses(key, "one"); time.Since(before) != settleTime {
			t.Errorf("waited %v", time.Since(before))
		}
	})
}

// A call's end may be asked for more than once at a time: by who waits for it, and by who
// has attached.
func TestAllWhoAskForACommandsConnectionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer start(n, "one")()
		_, told := n.begin(key, "one")
		before, waits := time.Now(), make(chan time.Duration)
		for range 2 {
			go func() {
				n.Uses(key, "one")
				waits <- time.Since(before)
			}()
		}
		synctest.Wait()
		told(event("a", egress.Done))
		for range 2 {
			if waited := <-waits; waited != 0 {
				t.Errorf("waited %v", waited)
			}
		}
	})
}

func TestOnlyValidPoliciesAreKept(t *testing.T) {
	n := newNetwork(t)
	if raw, err := n.Encode(nil); raw != "" || err != nil {
		t.Errorf("no rules are %q, %v", raw, err)
	}
	raw, err := n.Encode([]egress.Rule{{Host: "a.example.com"}})
	if err != nil || raw != `[{"host":"a.example.com"}]` {
		t.Errorf("got %s, %v", raw, err)
	}
	if _, err := n.Encode([]egress.Rule{{Host: "evil.org"}}); !errors.Is(err, egress.ErrPolicy) {
		t.Errorf("above the ceiling: %v", err)
	}
	// The ceiling may be lower than it was when the policy was kept.
	if _, err := n.Serve(box.Sandbox{Network: `[{"host":"evil.org"}]`}, nil); !errors.Is(err, egress.ErrCeiling) {
		t.Errorf("a ceiling that was lowered: %v", err)
	}
}
