package network

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
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// tested is a network with one sandbox.
type tested struct {
	*Network

	out *outlet
}

func newNetwork(t *testing.T) *tested {
	t.Helper()
	p, err := egress.New(egress.Options{
		Ceiling: []egress.Rule{{Host: "*.example.com"}}, Log: slog.New(slog.DiscardHandler),
		Limits: egress.Limits{Connections: 8, Idle: time.Minute, Total: time.Minute, Bytes: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &tested{Network: New(p, most, slog.New(slog.DiscardHandler))}
	n.out = n.serve(t, sandbox)
	return n
}

// serve serves a sandbox's way out, by which nobody comes.
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

// deserted is a listener to which nobody comes, until it is closed.
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

// most is how many connections a command may make.
const most = 1000

// sandbox is where the tests' commands run.
var sandbox = box.Sandbox{Tenant: "t", Session: "s", Network: "[]"}

// start has the network know of a command, until what it returns is forgotten.
func start(n *tested, call string) box.Followed {
	c := n.Follow(context.Background(), sandbox, call, nil)
	c.Enter(n.out)
	return c
}

var begun = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func event(host string, o egress.Outcome) egress.Event {
	return egress.Event{Start: begun, Host: host, Port: 443, Outcome: o, Sent: 1, Received: 2, Duration: time.Second}
}

func TestEachConnectionIsToldWithItsCommand(t *testing.T) {
	n := newNetwork(t)
	one, two := start(n, "one"), start(n, "two")
	for _, x := range []struct {
		exec string
		e    egress.Event
	}{
		{"one", event("a", egress.Done)}, {"one", event("a", egress.Done)}, {"one", event("a", egress.Denied)}, {"two", event("b", egress.Done)},
		{"", event("last", egress.Done)}, {"nobody", event("last", egress.Done)}, {"one", event("", egress.Opened)},
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
func begin(t *testing.T, n *tested, exec string) (ended func(egress.Event)) {
	t.Helper()
	return opened(t, n, exec, true).Ended
}

func opened(t *testing.T, n *tested, exec string, asked bool) egress.Use {
	t.Helper()
	u, err := n.begin(n.out, exec, asked)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A program makes many harmless connections before the one that it would rather not have told.
func TestManyConnectionsHideNoOther(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	for i := range most {
		e := event(strconv.Itoa(i%10), egress.Done)
		if i == most-2 {
			e = event("169.254.169.254", egress.Denied)
		}
		begin(t, n, "one")(e)
	}
	uses := one.Uses()
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
func TestConnectionsAreNotedAsTheyOpenAndEnd(t *testing.T) {
	n := newNetwork(t)
	noted := map[int64]box.Use{}
	one := n.Follow(t.Context(), sandbox, "one", func(number int64, u box.Use) { noted[number] = u })
	begin(t, n, "one")(event("a", egress.Done))
	begin(t, n, "one")(event("", egress.Opened))
	open := opened(t, n, "one", true)
	open.Dialed(event("b", egress.Done))
	if u := noted[3]; len(noted) != 2 || u.Host != "b" || u.Outcome != "aborted" || u.Message == "" {
		t.Errorf("while it is open %+v is noted", noted)
	}
	open.Ended(event("b", egress.Denied))
	if d := cmp.Diff([]box.Use{noted[1], noted[3]}, one.Uses()); d != "" || len(noted) != 2 {
		t.Errorf("what was noted is not what is told: %s", d)
	}
}

// What is not told one by one is not made.
func TestConnectionsBeyondTheNumberAreRefusedAndCounted(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	open := begin(t, n, "one")   // and still under way
	inside := begin(t, n, "one") // TLS, of which requests are told
	for range most - 2 {
		begin(t, n, "one")(event("a", egress.Done))
	}
	for range 3 {
		u, err := n.begin(n.out, "one", true)
		var no *egress.RefusalError
		if !errors.As(err, &no) || no.Outcome != egress.Limited || !strings.Contains(no.Message, "which is 1000") {
			t.Fatalf("it is refused by %v", err)
		}
		e := event("b", no.Outcome)
		e.Message = no.Message
		u.Ended(e)
	}
	inside(event("a", egress.Opened))
	begin(t, n, "one")(event("inside", egress.Done))
	open(event("first", egress.Done))
	opened(t, n, "one", false).Ended(event("", egress.Opened))
	opened(t, n, "one", false).Ended(event("", egress.Aborted))
	uses := one.Uses()
	last := uses[len(uses)-1]
	if len(uses) != most+1 || last.Host != "" || last.Connections != 4 || last.Outcome != "limited" || !strings.Contains(last.Message, "egress.requests") {
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
	mine, theirs := start(n, "one"), n.Follow(t.Context(), operator, "one", nil)
	n.Follow(t.Context(), other, "three", nil)
	theirs.Forget()
	mine.Uses()
	for _, forgotten := range []bool{false, true} {
		if forgotten {
			mine.Forget()
		}
		for _, w := range []box.Sandbox{sandbox, operator} {
			var no *egress.RefusalError
			if _, err := n.begin(&outlet{way: wayOf(w)}, "one", true); !errors.As(err, &no) || no.Outcome != egress.Aborted {
				t.Errorf("forgotten %v: %+v: %v", forgotten, w, err)
			}
		}
	}
}

// What is told is bounded, whatever a request says.
func TestLongMessagesAndNamesAreShortened(t *testing.T) {
	n := newNetwork(t)
	one := start(n, "one")
	e := event("a", egress.BadRequest)
	e.Message, e.Rule = strings.Repeat("é", maxMessage), strings.Repeat("é", 512)
	begin(t, n, "one")(e)
	u := one.Uses()[0]
	for got, most := range map[string]int{u.Message: maxMessage, u.Rule: maxRule} {
		if len(got) > most+len("…") || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

func TestACommandsEndWaitsForItsConnectionsAndCutsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		one, other := start(n, "one"), start(n, "other")
		soon, cut, stuck, theirs := opened(t, n, "one", true), opened(t, n, "one", false), opened(t, n, "one", true), opened(t, n, "other", true)
		stuck.Dialed(event("stuck", egress.Done))
		time.AfterFunc(100*time.Millisecond, func() { soon.Ended(event("soon", egress.Done)) })
		before := time.Now()
		context.AfterFunc(cut.Context, func() {
			if waited := time.Since(before); waited != settleTime {
				t.Errorf("it was cut after %v", waited)
			}
			cut.Ended(event("cut", egress.Aborted))
		})
		uses := one.Uses()
		if waited := time.Since(before); waited != settleTime+cutTime {
			t.Errorf("waited %v", waited)
		}
		if theirs.Context.Err() != nil {
			t.Error("another command's was cut")
		}
		stuck.Ended(event("stuck", egress.Done))
		if d := cmp.Diff(uses, one.Uses()); d != "" {
			t.Errorf("told otherwise later: %s", d)
		}
		var told []string
		for _, u := range uses {
			told = append(told, u.Host+" "+u.Outcome)
		}
		if want := []string{"soon done", "cut aborted", "stuck aborted"}; !slices.Equal(told, want) {
			t.Errorf("told %v, not %v", told, want)
		}
		one.Forget()
		other.Forget()
	})
}

// What names nobody is not of a command that has ended, when another can have done it.
func TestWhatNamesNobodyIsOfACommandThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		start(n, "first")
		last := start(n, "last")
		open := begin(t, n, "last")
		told := make(chan []box.Use)
		go func() { told <- last.Uses() }()
		synctest.Wait()
		if u := opened(t, n, "", true); u.Exec != "first" {
			t.Errorf("it is %s's", u.Exec)
		}
		if u := opened(t, n, "last", true); u.Exec != "last" {
			t.Errorf("what names it is %s's", u.Exec)
		} else {
			u.Ended(event("a", egress.Done))
		}
		open(event("a", egress.Done))
		if uses := <-told; len(uses) != 2 {
			t.Errorf("told %v", uses)
		}
	})
}

// Commands that run at once may each have a sandbox of their own.
func TestWhatNamesNobodyIsOfACommandInItsSandbox(t *testing.T) {
	n := newNetwork(t)
	first := start(n, "first")
	second := n.Follow(t.Context(), sandbox, "second", nil)
	second.Enter(n.serve(t, sandbox))
	n.Follow(t.Context(), sandbox, "third", nil) // whose sandbox is being made
	begin(t, n, "")(event("a", egress.Done))
	begin(t, n, "second")(event("b", egress.Done))
	for c, host := range map[box.Followed]string{first: "a", second: "b"} {
		if uses := c.Uses(); len(uses) != 1 || uses[0].Host != host {
			t.Errorf("of %s, told %v", host, uses)
		}
	}
	first.Forget()
	if u, err := n.begin(n.out, "", false); err == nil {
		t.Errorf("in a sandbox in which nothing runs it is %s's", u.Exec)
	}
}

// A call's end may be asked for more than once at a time: by who waits for it, and by who
// has attached.
func TestAllWhoAskForACommandsConnectionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		one := start(n, "one")
		told := begin(t, n, "one")
		before, waits := time.Now(), make(chan time.Duration)
		for range 2 {
			go func() {
				one.Uses()
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
