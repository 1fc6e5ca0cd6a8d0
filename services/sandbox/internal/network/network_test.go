package network

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

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
	return New(p, most)
}

// most is how many connections a command may make.
const most = 1000

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
		begin(t, n, x.exec)(x.e)
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

// begin is Network.begin, of which nothing is refused.
func begin(t *testing.T, n *Network, exec string) (told func(egress.Event)) {
	t.Helper()
	_, told, err := n.begin(key, exec)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// A program makes many harmless connections before the one that it would rather not have told.
func TestManyConnectionsHideNoOther(t *testing.T) {
	n := newNetwork(t)
	defer start(n, "one")()
	for i := range most {
		e := event(strconv.Itoa(i%10), egress.Done)
		if i == most-2 {
			e = event("169.254.169.254", egress.Denied)
		}
		begin(t, n, "one")(e)
	}
	uses := n.Uses(key, "one")
	if len(uses) != most || uses[most-2].Host != "169.254.169.254" {
		t.Fatalf("%d uses, the last but one %+v", len(uses), uses[len(uses)-2])
	}
	for _, u := range uses {
		if u.Connections != 1 {
			t.Errorf("%+v is several", u)
		}
	}
}

// What was noted survives a crash, in which what is told at the end does not.
func TestConnectionsAreNotedAsTheyEnd(t *testing.T) {
	n := newNetwork(t)
	defer start(n, "one")()
	var noted []box.Use
	n.Note(key, "one", func(u box.Use) { noted = append(noted, u) })
	n.Note(key, "nobody", func(box.Use) { t.Error("a use of nobody") })
	begin(t, n, "one")(event("a", egress.Done))
	begin(t, n, "one")(event("", egress.Opened))
	begin(t, n, "one")(event("b", egress.Denied))
	if d := cmp.Diff(noted, n.Uses(key, "one")); d != "" || len(noted) != 2 {
		t.Errorf("what was noted is not what is told: %s", d)
	}
}

// What is not told one by one is not made.
func TestConnectionsBeyondTheNumberAreRefusedAndCounted(t *testing.T) {
	n := newNetwork(t)
	end := start(n, "one")
	open := begin(t, n, "one")   // and still under way
	inside := begin(t, n, "one") // TLS, of which requests are told
	for range most - 2 {
		begin(t, n, "one")(event("a", egress.Done))
	}
	for range 3 {
		_, told, err := n.begin(key, "one")
		var no *egress.RefusalError
		if !errors.As(err, &no) || no.Outcome != egress.Limited || !strings.Contains(no.Message, "which is 1000") {
			t.Fatalf("it is refused by %v", err)
		}
		e := event("b", no.Outcome)
		e.Message = no.Message
		told(e)
	}
	inside(event("a", egress.Opened))
	begin(t, n, "one")(event("inside", egress.Done))
	open(event("first", egress.Done))
	uses := n.Uses(key, "one")
	last := uses[len(uses)-1]
	if len(uses) != most+1 || last.Host != "" || last.Connections != 3 || last.Outcome != "limited" || !strings.Contains(last.Message, "egress.requests") {
		t.Errorf("%d uses, the last %+v", len(uses), last)
	}
	end()
	if len(n.running) != 0 {
		t.Errorf("it remembers %v", n.running)
	}
}

func TestWhatNoCommandCanHaveAskedForIsRefused(t *testing.T) {
	n := newNetwork(t)
	start(n, "one")()
	var no *egress.RefusalError
	if _, _, err := n.begin(key, "one"); !errors.As(err, &no) || no.Outcome != egress.Aborted {
		t.Error(err)
	}
}

// What is told is bounded, whatever a request says.
func TestALongMessageIsShortened(t *testing.T) {
	n := newNetwork(t)
	defer start(n, "one")()
	e := event("a", egress.BadRequest)
	e.Message = strings.Repeat("é", maxMessage)
	begin(t, n, "one")(e)
	if got := n.Uses(key, "one")[0].Message; len(got) > maxMessage+len("…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestACommandsEndWaitsForItsConnectionsButNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer start(n, "one")()
		told := begin(t, n, "one")
		time.AfterFunc(100*time.Millisecond, func() { told(event("a", egress.Done)) })
		if uses := n.Uses(key, "one"); len(uses) != 1 {
			t.Errorf("told %v before the connection's end", uses)
		}
		begin(t, n, "one") // never ends
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
		told := begin(t, n, "one")
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
