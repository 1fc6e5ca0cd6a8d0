package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// tested is a network with one sandbox.
type tested struct {
	*Network

	out *outlet
}

func newNetwork(t *testing.T) *tested {
	t.Helper()
	p, err := New(Options{
		Ceiling: []Rule{{Host: "*.example.com"}}, Log: slog.New(slog.DiscardHandler),
		Limits: Limits{Connections: 8, Idle: time.Minute, Total: time.Minute, Bytes: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &tested{Network: NewNetwork(p, mostUses, slog.New(slog.DiscardHandler))}
	n.out = n.serve(t, sandbox)
	return n
}

// serve serves a sandbox's way out without connections.
func (n *tested) serve(t *testing.T, s box.Sandbox) *outlet {
	t.Helper()
	out, err := n.Serve(s, deserted(make(chan struct{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out.(*outlet) //nolint:forcetypeassert // it is
}

// deserted is a listener without connections until it is closed.
type deserted chan struct{}

func (d deserted) Accept() (net.Conn, error) {
	<-d
	return nil, net.ErrClosed
}

func (d deserted) Close() error {
	close(d)
	return nil
}

func (deserted) Addr() net.Addr { return &net.TCPAddr{} }

// mostUses is how many connections a command may make.
const mostUses = 1000

// sandbox is where the tests' commands run.
var sandbox = box.Sandbox{Tenant: "t", Session: "s", Network: "[]"}

// start has the network know of a command, until what it returns is forgotten.
func start(n *tested, call string) box.Followed {
	c := n.Follow(context.Background(), sandbox, call)
	c.Enter(n.out)
	return c
}

var begun = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func event(host string, o Outcome) Event {
	return Event{Start: begun, Host: host, Port: 443, Outcome: o, Sent: 1, Received: 2, Duration: time.Second}
}

func TestEachConnectionIsToldWithItsCommand(t *testing.T) {
	n := newNetwork(t)
	one, two := start(n, "one"), start(n, "two")
	for _, x := range []struct {
		exec string
		e    Event
	}{
		{"one", event("a", Done)}, {"one", event("a", Done)}, {"one", event("a", Denied)}, {"two", event("b", Done)},
		{"", event("last", Done)}, {"nobody", event("last", Done)}, {"one", event("", Opened)},
	} {
		begin(t, n, x.exec)(x.e)
	}
	want := map[box.Followed][]box.Use{
		one: {
			{Host: "a", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "a", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "a", Port: 443, Outcome: "denied", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
		},
		two: {
			{Host: "b", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "last", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
			{Host: "last", Port: 443, Outcome: "done", Connections: 1, Sent: 1, Received: 2, Started: begun, Duration: time.Second},
		},
	}
	for c, uses := range want {
		if d := cmp.Diff(uses, c.Uses()); d != "" {
			t.Error(d)
		}
	}
}

// begin is Network.begin of a request of which nothing is refused.
func begin(t *testing.T, n *tested, exec string) (ended func(Event)) {
	t.Helper()
	return use(t, n, exec).Ended
}

func use(t *testing.T, n *tested, exec string) Use {
	t.Helper()
	u, err := n.begin(n.out, exec)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A program makes many harmless connections before the one that it would rather not have told.
func TestManyConnectionsHideNoOther(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	for i := range mostUses {
		e := event(strconv.Itoa(i%10), Done)
		if i == mostUses-2 {
			e = event("169.254.169.254", Denied)
		}
		begin(t, n, "one")(e)
	}
	uses := one.Uses()
	if len(uses) != mostUses || uses[mostUses-2].Host != "169.254.169.254" {
		t.Fatalf("%d uses, the last but one %+v", len(uses), uses[len(uses)-2])
	}
	for _, u := range uses {
		if u.Connections != 1 {
			t.Errorf("%+v is several", u)
		}
	}
}

// What is not told one by one is not made.
func TestConnectionsBeyondTheNumberAreRefusedAndCounted(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	open := begin(t, n, "one")   // and still under way
	inside := begin(t, n, "one") // TLS, of which requests are told
	for range mostUses - 2 {
		begin(t, n, "one")(event("a", Done))
	}
	for range 3 {
		u, err := n.begin(n.out, "one")
		var no *RefusalError
		if !errors.As(err, &no) || no.Outcome != Limited || !strings.Contains(no.Message, "limit of 1000") {
			t.Fatalf("it is refused by %v", err)
		}
		e := event("b", no.Outcome)
		e.Message = no.Message
		u.Ended(e)
	}
	inside(event("a", Opened))
	begin(t, n, "one")(event("inside", Done))
	open(event("first", Done))
	uses := one.Uses()
	last := uses[len(uses)-1]
	if len(uses) != mostUses+1 || last.Host != "" || last.Connections != 3 || last.Outcome != "limited" || !strings.Contains(last.Message, "egress.requests") {
		t.Errorf("%d uses, the last %+v", len(uses), last)
	}
	one.Forget()
	if len(n.running) != 0 {
		t.Errorf("it remembers %v", n.running)
	}
}

func TestWhatNoCommandCanHaveAskedForIsRefused(t *testing.T) {
	n := newNetwork(t)
	other := sandbox
	other.Network = "another"
	operator := sandbox
	operator.Operator = true
	mine, theirs := start(n, "one"), n.Follow(t.Context(), operator, "one")
	n.Follow(t.Context(), other, "three")
	theirs.Forget()
	mine.Uses()
	for _, forgotten := range []bool{false, true} {
		if forgotten {
			mine.Forget()
		}
		for _, w := range []box.Sandbox{sandbox, operator} {
			var no *RefusalError
			if _, err := n.begin(&outlet{way: wayOf(w)}, "one"); !errors.As(err, &no) || no.Outcome != Aborted {
				t.Errorf("forgotten %v: %+v: %v", forgotten, w, err)
			}
		}
	}
}

// What is told is bounded, whatever a request says.
func TestLongMessagesAndNamesAreShortened(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	e := event("a", BadRequest)
	e.Message, e.Rule = strings.Repeat("é", maxUseMessage), strings.Repeat("é", 512)
	begin(t, n, "one")(e)
	u := one.Uses()[0]
	for got, limit := range map[string]int{u.Message: maxUseMessage, u.Rule: maxUseRule} {
		if len(got) > limit+len("…") || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

func TestTheEndOfACommandWaitsForItsConnectionsAndCutsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		one, other := start(n, "one"), start(n, "other")
		soon, cut, theirs := use(t, n, "one"), use(t, n, "one"), use(t, n, "other")
		use(t, n, "one") // never ends
		time.AfterFunc(100*time.Millisecond, func() { soon.Ended(event("soon", Done)) })
		before := time.Now()
		context.AfterFunc(cut.Context, func() {
			if waited := time.Since(before); waited != settleTime {
				t.Errorf("it was cut after %v", waited)
			}
			cut.Ended(event("cut", Aborted))
		})
		uses := one.Uses()
		if waited := time.Since(before); waited != settleTime+cutTime {
			t.Errorf("waited %v", waited)
		}
		if theirs.Context.Err() != nil {
			t.Error("another command's was cut")
		}
		var told []string
		for _, u := range uses {
			told = append(told, u.Host+" "+u.Outcome)
		}
		if want := []string{"soon done", "cut aborted"}; !slices.Equal(told, want) {
			t.Errorf("told %v, not %v", told, want)
		}
		one.Forget()
		other.Forget()
	})
}

// A command that has ended begins no use: another one that runs in the sandbox can have made it.
func TestAUseIsOfACommandThatRuns(t *testing.T) {
	n := newNetwork(t)
	first, last := start(n, "first"), start(n, "last")
	last.Uses()
	for _, name := range []string{"", "last"} {
		if u := use(t, n, name); u.Exec != "first" {
			t.Errorf("what names %q is of %q", name, u.Exec)
		} else {
			u.Ended(event("a", Done))
		}
	}
	if uses := first.Uses(); len(uses) != 2 {
		t.Errorf("told %v", uses)
	}
}

// Commands that run at once may each have a sandbox of their own.
func TestWhatNamesNobodyIsOfACommandInItsSandbox(t *testing.T) {
	n := newNetwork(t)
	first := start(n, "first")
	second := n.Follow(t.Context(), sandbox, "second")
	second.Enter(n.serve(t, sandbox))
	n.Follow(t.Context(), sandbox, "third") // whose sandbox is being made
	begin(t, n, "")(event("a", Done))
	begin(t, n, "second")(event("b", Done))
	for c, host := range map[box.Followed]string{first: "a", second: "b"} {
		if uses := c.Uses(); len(uses) != 1 || uses[0].Host != host {
			t.Errorf("of %s, told %v", host, uses)
		}
	}
	first.Forget()
	if u, err := n.begin(n.out, ""); err == nil {
		t.Errorf("in a sandbox in which nothing runs it is %s's", u.Exec)
	}
}

// The client that waits for a call and one that has attached may both ask for its end.
func TestAllWhoAskForACommandsConnectionsAreTold(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	ended, told := begin(t, n, "one"), make(chan []box.Use)
	for range 2 {
		go func() { told <- one.Uses() }()
	}
	ended(event("a", Done))
	for range 2 {
		if uses := <-told; len(uses) != 1 {
			t.Errorf("told %v", uses)
		}
	}
}

func TestOnlyValidPoliciesAreKept(t *testing.T) {
	n := newNetwork(t)
	if raw, err := n.Encode(nil); raw != "" || err != nil {
		t.Errorf("no rules are %q, %v", raw, err)
	}
	raw, err := n.Encode([]Rule{{Host: "a.example.com"}})
	if err != nil || raw != `[{"host":"a.example.com"}]` {
		t.Errorf("got %s, %v", raw, err)
	}
	if _, err := n.Encode([]Rule{{Host: "evil.org"}}); !errors.Is(err, ErrPolicy) {
		t.Errorf("above the ceiling: %v", err)
	}
	// The ceiling may be lower than it was when the policy was kept.
	if _, err := n.Serve(box.Sandbox{Network: `[{"host":"evil.org"}]`}, nil); !errors.Is(err, ErrCeiling) {
		t.Errorf("a ceiling that was lowered: %v", err)
	}
}
