package tools

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

const (
	forSession = commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION
	forAlways  = commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS
)

// granting answers a call with an approval that holds for longer.
func granting(q *toolsv1.CallToolRequest, scope commonv1.ApprovalScope, rule string) *toolsv1.CallToolRequest {
	q = approve(q, true, "")
	q.Approval.Scope, q.Approval.Rule = scope, rule
	return q
}

func in(session string, q *toolsv1.CallToolRequest) *toolsv1.CallToolRequest {
	q = proto.CloneOf(q)
	q.Call.Session = session
	return q
}

func asking(id, script string) *toolsv1.CallToolRequest {
	q := bashCall(id, script)
	q.Profile = "asking"
	return q
}

func newAsking(t *testing.T) *fixture {
	return newFixture(t, func(c *Config) {
		c.Profiles = map[string]Profile{
			"asking": {Allow: []string{"Bash(out *)", "Bash(wait *)"}, Ask: []string{"Bash(exit *)", "Write", "Bash(fail *)"}, Deny: []string{"Bash(rm *)", "Write(./locked/**)"}},
			"others": {Ask: []string{"Bash"}},
		}
	})
}

// asks makes a call about which a person must be asked, and returns the rules that are suggested.
func (f *fixture) asks(q *toolsv1.CallToolRequest) []string {
	f.t.Helper()
	a, err := f.call(q)
	if err != nil || a.ask == nil {
		f.t.Fatalf("call %s: got %v %q, %v, want a question", q.GetCall().GetCallId(), a.decision, a.text(), err)
	}
	return a.ask.GetSuggestedRules()
}

func TestAGrantAnswersLaterQuestions(t *testing.T) {
	f := newAsking(t)
	if got := strings.Join(f.asks(asking("g1", "exit 0")), "; "); got != "Bash(exit 0)" {
		t.Errorf("suggested: %s", got)
	}
	f.must(granting(asking("g1", "exit 0"), forSession, ""), outcomeOK)
	if a := f.must(asking("g2", "exit 0"), outcomeOK); a.decision.GetRule() != "allowed by ann for the session: Bash(exit 0)" {
		t.Errorf("got %v", a.decision)
	}
	f.asks(asking("g3", "exit 00"))
	f.asks(in("sessions/s2", asking("g4", "exit 0")))

	f.must(granting(asking("g5", "exit 0"), forAlways, "Bash(exit *)"), outcomeOK)
	if a := f.must(in("sessions/s2", asking("g6", "exit 0")), outcomeOK); a.decision.GetRule() != "allowed by ann always: Bash(exit *)" {
		t.Errorf("got %v", a.decision)
	}
	f.must(asking("g7", "out a; exit 0"), outcomeOK)
	f.must(asking("g8", "exit 0; rm x"), outcomeDenied)
	f.asks(asking("g9", "exit 0; fail"))
	f.asks(asking("g10", "exit 0; curl x"))
	plan := asking("g11", "exit 0")
	plan.Mode = commonv1.PermissionMode_PERMISSION_MODE_PLAN
	f.must(plan, outcomeDenied)
	other := bashCall("g12", "exit 0")
	other.Profile = "others"
	f.asks(other)

	f.stop()
	f.start()
	f.must(asking("g13", "exit 0"), outcomeOK)
	if _, err := f.calls.DeleteSessionCalls(t.Context(), &toolsv1.DeleteSessionCallsRequest{Session: session, NextEpoch: 1}); err != nil {
		t.Fatal(err)
	}
	f.must(asking("g14", "exit 0"), outcomeOK) // the grant for all sessions stays
}

func TestAGrantForAPath(t *testing.T) {
	f := newAsking(t)
	write := func(id, path string) *toolsv1.CallToolRequest {
		q := ask(id, "Write", `{"file_path":`+quote(path)+`,"content":"x"}`)
		q.Profile = "asking"
		return q
	}
	if got := strings.Join(f.asks(write("p1", "src/a/b.go")), "; "); got != "Write(./src/a/b.go); Write(./src/a/**)" {
		t.Errorf("suggested: %s", got)
	}
	f.must(granting(write("p1", "src/a/b.go"), forSession, "Write(./src/**)"), outcomeOK)
	f.must(write("p2", "src/c"), outcomeOK)
	f.asks(write("p3", "srcs/c"))
	f.sandbox.Put(session, "other/x", "x")
	f.must(write("p4", "locked/c"), outcomeDenied)
}

func TestAGrantThatDoesNotFitIsRefused(t *testing.T) {
	f := newAsking(t)
	for i, rule := range []string{"Bash(git *)", "Write", "*", "B*", "Bash(", "Bash(out *)"} {
		q := asking("n1", "exit 0")
		f.refused(granting(q, forSession, rule), "INVALID_GRANT")
		if f.sandbox.Starts("n1") != 0 {
			t.Errorf("%d: it ran", i)
		}
	}
	long := asking("n2", "exit 0 #"+strings.Repeat("x", 5000))
	if got := f.asks(long); len(got) != 0 {
		t.Errorf("suggested: %v", got)
	}
	f.refused(granting(long, forAlways, ""), "INVALID_GRANT")
	f.must(granting(long, forAlways, "Bash"), outcomeOK)
	f.must(asking("n3", "exit 0"), outcomeOK)
}

// TestACallRunsWithThePersonsArguments changes the arguments of a call that is then made by
// this replica, answered again, and taken over.
func TestACallRunsWithThePersonsArguments(t *testing.T) {
	f := newAsking(t)
	edit := func(q *toolsv1.CallToolRequest, script string) *toolsv1.CallToolRequest {
		q = approve(q, true, "")
		q.Approval.UpdatedArgumentsJson = `{"command":` + quote(script) + `}`
		return q
	}
	q := asking("e1", "exit 7")
	f.asks(q)
	a := f.must(edit(q, "out edited"), outcomeOK)
	if a.text() != "edited" || a.decision.GetRule() != "approved by ann with other arguments: allow Bash(out *)" {
		t.Errorf("got %q, %v", a.text(), a.decision)
	}
	for _, again := range []*toolsv1.CallToolRequest{q, edit(q, "out other"), approve(q, false, "")} {
		if a := f.must(again, outcomeOK); a.text() != "edited" || f.sandbox.Starts("e1") != 1 {
			t.Errorf("another answer: got %q", a.text())
		}
	}
	if a := f.must(edit(asking("e2", "exit 0"), "rm x"), outcomeDenied); !strings.Contains(a.text(), "with the arguments of ann: deny Bash(rm *)") {
		t.Errorf("got %q", a.text())
	}
	f.must(edit(asking("e3", "exit 0"), "fail"), outcomeOK) // a question about the new ones is answered, too
	bad := edit(asking("e4", "exit 0"), "x")
	bad.Approval.UpdatedArgumentsJson = `{"command":7}`
	if a := f.must(bad, outcomeError); !strings.Contains(a.text(), "a person put other arguments") || f.sandbox.Starts("e4") != 0 {
		t.Errorf("got %q", a.text())
	}
	covered := edit(asking("e5", "exit 0"), "fail now")
	covered.Approval.Scope, covered.Approval.Rule = forSession, "Bash(exit *)"
	want := "approved by ann with other arguments, which Bash(exit *) does not cover, so for this call alone: ask Bash(fail *)"
	if a := f.must(covered, outcomeOK); !strings.HasPrefix(a.decision.GetRule(), want) {
		t.Errorf("got %v", a.decision)
	}
	f.asks(asking("e7", "fail now"))
	f.asks(asking("e8", "exit 0"))
	covered = edit(asking("e9", "exit 3"), "exit 0")
	covered.Approval.Scope, covered.Approval.Rule = forSession, "Bash(exit *)"
	f.must(covered, outcomeOK)
	f.must(asking("e10", "exit 0"), outcomeOK)

	q = ask("e6", "TodoWrite", `{"todos":[]}`)
	q.Profile = "others"
	f.must(q, outcomeDenied)
}

func TestAnEditedCallIsResumedWithThePersonsArguments(t *testing.T) {
	f := newAsking(t)
	q := approve(asking("r1", "exit 7"), true, "")
	q.Approval.UpdatedArgumentsJson = `{"command":"wait gate\nout edited"}`
	f.open(t.Context(), q)
	f.stop()
	f.start()
	done := make(chan answer, 1)
	go func() {
		a, err := f.call(asking("r1", "exit 7"))
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	f.sandbox.Release("gate")
	if a := <-done; a.result.GetOutcome() != outcomeOK || a.text() != "edited" || f.sandbox.Starts("r1") != 1 {
		t.Errorf("got %v %q", a.result.GetOutcome(), a.text())
	}
}
