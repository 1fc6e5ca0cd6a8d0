package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

const (
	stateRunning   = toolsv1.OperationState_OPERATION_STATE_RUNNING
	stateSucceeded = toolsv1.OperationState_OPERATION_STATE_SUCCEEDED
	stateFailed    = toolsv1.OperationState_OPERATION_STATE_FAILED
	stateCancelled = toolsv1.OperationState_OPERATION_STATE_CANCELLED
	stateUnknown   = toolsv1.OperationState_OPERATION_STATE_UNKNOWN
	stateExpired   = toolsv1.OperationState_OPERATION_STATE_EXPIRED
)

func background(id, script string) *toolsv1.CallToolRequest {
	return ask(id, "Bash", `{"command":`+quote(script)+`,"description":"Build it","run_in_background":true}`)
}

func quick(c *Config) { c.LeaseTTL = 300 * time.Millisecond }

func (f *fixture) operation(id string) *toolsv1.Operation {
	f.t.Helper()
	a, err := f.ops.GetOperation(f.t.Context(), &toolsv1.GetOperationRequest{Name: "operations/" + id})
	if err != nil {
		f.t.Fatal(err)
	}
	return a.GetOperation()
}

// until waits for an operation to be as it is wanted.
func (f *fixture) until(id string, is func(*toolsv1.Operation) bool) *toolsv1.Operation {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	for {
		o := f.operation(id)
		if is(o) {
			return o
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("the operation stays as %v", o)
		}
	}
}

func (f *fixture) ends(id string, want toolsv1.OperationState) *toolsv1.Operation {
	f.t.Helper()
	o := f.until(id, func(o *toolsv1.Operation) bool { return o.GetState() != stateRunning })
	if o.GetState() != want || o.GetEndTime() == nil || len(o.GetContent()) == 0 && want != stateSucceeded {
		f.t.Fatalf("got %v, want %v", o, want)
	}
	return o
}

func TestACommandRunsOnAsAnOperation(t *testing.T) {
	f := newFixture(t, quick)
	got := f.must(background("o1", "out before\nwait g\nout after\nexit 3"), outcomeOK)
	if got.result.GetOperation() != "operations/o1" || !strings.Contains(got.text(), "operations/o1") {
		t.Fatalf("got %v", got.result)
	}
	if again := f.must(background("o1", "out before\nwait g\nout after\nexit 3"), outcomeOK); again.result.GetOperation() != "operations/o1" {
		t.Errorf("repeated: got %v", again.result)
	}
	o := f.until("o1", func(o *toolsv1.Operation) bool { return o.GetOutputHead() == "before\n" })
	if o.GetState() != stateRunning || o.GetSession() != session || o.GetCallId() != "o1" || o.GetTool() != "Bash" || o.GetProgress() != "Build it" ||
		o.GetExpireTime().AsTime().Sub(o.GetCreateTime().AsTime()) != 24*time.Hour || o.ExitCode != nil {
		t.Errorf("got %v", o)
	}
	if a := f.must(ask("k1", "check_operation", `{"operation":"operations/o1"}`), outcomeOK); !strings.Contains(a.text(), "running (Build it)\nOutput:\nbefore") {
		t.Errorf("checked: %q", a.text())
	}
	f.sandbox.Release("g")
	if a := f.must(ask("k2", "check_operation", `{"operation":"o1","wait_seconds":20}`), outcomeOK); !strings.Contains(a.text(), "failed, exit code 3") || !strings.HasSuffix(a.text(), "\nafter") || strings.Contains(a.text(), "before") {
		t.Errorf("checked when it had ended: %q", a.text())
	}
	for i, offset := range []string{"0.0", "1e400", "9223372036854775808"} {
		f.must(ask(fmt.Sprint("far", i), "check_operation", `{"operation":"o1","offset":`+offset+`}`), outcomeOK)
	}
	if a := f.must(ask("k3", "check_operation", `{"operation":"o1","offset":0}`), outcomeOK); !strings.Contains(a.text(), "before\nafter") {
		t.Errorf("from the beginning: %q", a.text())
	}
	o = f.ends("o1", stateFailed)
	if o.GetExitCode() != 3 || o.GetOutputHead() != "before\nafter\n" || o.GetOutputBytes() != 13 || o.GetContent()[0].GetText().GetText() != "Exit code 3\nbefore\nafter\n" {
		t.Errorf("got %v", o)
	}
	if f.sandbox.Starts("o1") != 1 || slices.Contains(f.sandbox.Acknowledged(), "o1") {
		t.Errorf("started %d times, acknowledged %v", f.sandbox.Starts("o1"), f.sandbox.Acknowledged())
	}
}

func TestAnOperationSurvivesARestart(t *testing.T) {
	f := newFixture(t, quick)
	f.must(background("o1", "out a\nwait g\nout b"), outcomeOK)
	f.until("o1", func(o *toolsv1.Operation) bool { return o.GetOutputBytes() == 2 })
	f.stop()
	f.start()
	f.sandbox.Release("g")
	if o := f.ends("o1", stateSucceeded); o.GetOutputHead() != "a\nb\n" || o.GetExitCode() != 0 || o.ExitCode == nil {
		t.Errorf("got %v", o)
	}
}

func TestAnOperationThatTheSandboxLostIsUnknown(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"restarted":      func(f *fixture) { f.sandbox.Lose("o1") },
		"without a disk": func(f *fixture) { f.sandbox.Vanish("o1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, quick)
			f.must(background("o1", "wait never"), outcomeOK)
			lose(f)
			f.ends("o1", stateUnknown)
			if a := f.must(ask("k1", "check_operation", `{"operation":"o1"}`), outcomeOK); !strings.Contains(a.text(), "check before repeating it") {
				t.Errorf("got %q", a.text())
			}
		})
	}
}

func TestCancelOperation(t *testing.T) {
	f := newFixture(t, quick)
	f.sandbox.SeeEpoch(session, 1)
	f.must(background("o1", "out x\nwait never"), outcomeOK)
	f.must(background("o2", "wait never"), outcomeOK)
	f.sandbox.SeeEpoch(session, 7) // the session has another holder by now
	cancel := func(name, id string) (*toolsv1.Operation, error) {
		a, err := f.ops.CancelOperation(t.Context(), &toolsv1.CancelOperationRequest{Name: name, RequestId: id})
		return a.GetOperation(), err
	}
	for range 2 {
		if o, err := cancel("operations/o1", "r1"); err != nil || o.GetState() != stateCancelled {
			t.Fatalf("got %v, %v", o, err)
		}
	}
	if _, err := cancel("operations/o2", "r1"); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) || apierr.Code(err) != codes.AlreadyExists {
		t.Errorf("the id of another request: %v", err)
	}
	if o := f.operation("o2"); o.GetState() != stateRunning {
		t.Errorf("a refused request changed the operation: %v", o)
	}
	if _, err := cancel("operations/none", "r2"); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND) {
		t.Errorf("got %v", err)
	}
	if a := f.must(ask("k1", "cancel_operation", `{"operation":"operations/o2"}`), outcomeOK); !strings.Contains(a.text(), "operations/o2: cancelled") {
		t.Errorf("by the model: %q", a.text())
	}
	q := background("o3", "exit 0")
	q.Call.Epoch = 7
	f.must(q, outcomeOK)
	f.ends("o3", stateSucceeded)
	if o, err := cancel("operations/o3", "r3"); err != nil || o.GetState() != stateSucceeded {
		t.Errorf("one that had ended: %v, %v", o, err)
	}
}

func TestAnOperationRunsForItsTimeOnly(t *testing.T) {
	f := newFixture(t, func(c *Config) { quick(c); c.OperationTTL = time.Second })
	f.must(background("o1", "out x\nwait never"), outcomeOK)
	f.ends("o1", stateExpired)
}

func TestListOperations(t *testing.T) {
	f := newFixture(t, quick)
	for _, id := range []string{"o1", "o2", "o3"} {
		q := background(id, "exit 0")
		if id == "o2" {
			q.Call.Session = "sessions/s2"
		}
		f.must(q, outcomeOK)
	}
	list := func(in string) (names []string) {
		q := &toolsv1.ListOperationsRequest{Session: in, PageSize: 1}
		for {
			a, err := f.ops.ListOperations(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range a.GetOperations() {
				names = append(names, o.GetName())
			}
			if q.PageToken = a.GetNextPageToken(); q.PageToken == "" {
				return names
			}
		}
	}
	if got := list(""); !slices.Equal(got, []string{"operations/o3", "operations/o2", "operations/o1"}) {
		t.Errorf("all: %v", got)
	}
	if got := list("sessions/s1"); !slices.Equal(got, []string{"operations/o3", "operations/o1"}) {
		t.Errorf("a session's: %v", got)
	}
	a, err := f.ops.ListOperations(t.Context(), &toolsv1.ListOperationsRequest{PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ops.ListOperations(t.Context(), &toolsv1.ListOperationsRequest{Session: "sessions/s1", PageToken: a.GetNextPageToken()}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN) {
		t.Errorf("a token of another list: %v", err)
	}
}

// An operation is seen by the user as whom its call ran, and by operators.
func TestOperationsAreTheUsers(t *testing.T) {
	f := newFixture(t, quick)
	f.must(background("o1", "wait never"), outcomeOK) // as the user default
	as := func(user string, role principal.Role) context.Context {
		return principal.With(t.Context(), principal.Principal{Tenant: "default", User: user, Role: role})
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		want bool
	}{
		{"the user", as("default", principal.RoleUser), true},
		{"an operator", as("olga", principal.RoleOperator), true},
		{"another user", as("ann", principal.RoleUser), false},
	} {
		_, err := f.ops.GetOperation(c.ctx, &toolsv1.GetOperationRequest{Name: "operations/o1"})
		if (err == nil) != c.want || err != nil && !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND) {
			t.Errorf("%s reads it: %v", c.name, err)
		}
		all, err := f.ops.ListOperations(c.ctx, &toolsv1.ListOperationsRequest{})
		if err != nil || len(all.GetOperations()) > 0 != c.want {
			t.Errorf("%s lists %v, %v", c.name, all, err)
		}
	}
	if _, err := f.ops.CancelOperation(as("ann", principal.RoleUser), &toolsv1.CancelOperationRequest{Name: "operations/o1"}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND) {
		t.Errorf("another user cancels it: %v", err)
	}
	if o, err := f.ops.GetOperation(as("default", principal.RoleUser), &toolsv1.GetOperationRequest{Name: "operations/o1"}); err != nil || o.GetOperation().GetState() != toolsv1.OperationState_OPERATION_STATE_RUNNING {
		t.Errorf("then it is %v, %v", o, err)
	}
	if o, err := f.ops.CancelOperation(as("default", principal.RoleUser), &toolsv1.CancelOperationRequest{Name: "operations/o1"}); err != nil || o.GetOperation().GetEndTime() == nil {
		t.Errorf("the user cancels it: %v, %v", o, err)
	}
}

func TestADeletedSessionTakesItsOperationsAlong(t *testing.T) {
	f := newFixture(t, quick)
	f.must(background("o1", "wait never"), outcomeOK)
	f.must(background("o2", "exit 0"), outcomeOK)
	f.ends("o2", stateSucceeded)
	for range 2 {
		if _, err := f.calls.DeleteSessionCalls(t.Context(), &toolsv1.DeleteSessionCallsRequest{Session: session}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"o1", "o2"} {
		if _, err := f.ops.GetOperation(t.Context(), &toolsv1.GetOperationRequest{Name: "operations/" + id}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND) {
			t.Errorf("%s: %v", id, err)
		}
	}
	f.refused(background("o1", "wait never"), "STALE_EPOCH")
}

func TestAnOperationBelongsToItsSession(t *testing.T) {
	f := newFixture(t, quick)
	f.must(background("o1", "exit 0"), outcomeOK)
	for i, tool := range []string{"check_operation", "cancel_operation"} {
		q := ask("k"+string(rune('1'+i)), tool, `{"operation":"operations/o1"}`)
		q.Call.Session = "sessions/s2"
		if a := f.must(q, outcomeError); !strings.Contains(a.text(), "no operation") {
			t.Errorf("%s: %q", tool, a.text())
		}
	}
}

func TestAnOperationTellsOfItsNetworkOnce(t *testing.T) {
	f := newFixture(t, quick)
	f.must(background("o1", "fetch a.example.com\nexit 0"), outcomeOK)
	o := f.ends("o1", stateSucceeded)
	if len(o.GetNetwork()) != 1 || o.GetNetwork()[0].GetHost() != "a.example.com" {
		t.Errorf("got %v", o)
	}
	if a := f.must(ask("k1", "check_operation", `{"operation":"o1"}`), outcomeOK); len(a.result.GetNetwork()) > 0 {
		t.Errorf("who looks at it is told of it as if it were its own: %v", a.result)
	}
	all, err := f.ops.ListOperations(t.Context(), &toolsv1.ListOperationsRequest{})
	if err != nil || len(all.GetOperations()) != 1 || len(all.GetOperations()[0].GetNetwork()) > 0 {
		t.Errorf("a list of many would be too large: %v, %v", all, err)
	}
}
