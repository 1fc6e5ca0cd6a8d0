package tools

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestPermission(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Profiles = map[string]Profile{"git": {Allow: []string{"Bash(git *)", "Read"}, Deny: []string{"Read(secrets/**)"}}}
	})
	f.sandbox.Put(session, "secrets/key", "needle")
	f.sandbox.Put(session, "open", "needle")
	t.Run("a profile that does not exist is refused", func(t *testing.T) {
		q := bashCall("p1", "out x")
		q.Profile = "nope"
		f.refused(q, "PROFILE_NOT_FOUND")
	})
	t.Run("what the profile does not allow is denied and explained", func(t *testing.T) {
		q := bashCall("p2", "out x")
		q.Profile = "read-only"
		a := f.must(q, outcomeDenied)
		if a.decision.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY || !strings.Contains(a.text(), "profile read-only does not allow") {
			t.Errorf("got %v, %q", a.decision, a.text())
		}
		if f.sandbox.Starts("p2") != 0 {
			t.Error("it ran")
		}
	})
	t.Run("a rule on commands looks into them", func(t *testing.T) {
		q := bashCall("p3", "git log; curl x")
		q.Profile = "git"
		f.must(q, outcomeDenied)
	})
	t.Run("searches leave out what may not be read", func(t *testing.T) {
		q := ask("p4", "Read", `{"file_path":"/workspace/secrets/key"}`)
		q.Profile = "git"
		f.must(q, outcomeDenied)
		f.config.Profiles["search"] = Profile{Allow: []string{"Grep", "Glob", "LS"}, Deny: []string{"Read(secrets/**)"}}
		f.stop()
		f.start()
		for i, q := range []*toolsv1.CallToolRequest{
			ask("p5", "Grep", `{"pattern":"needle"}`), ask("p6", "Glob", `{"pattern":"**"}`), ask("p7", "LS", `{}`),
		} {
			q.Profile = "search"
			if a := f.must(q, outcomeOK); strings.Contains(a.text(), "key") || !strings.Contains(a.text(), "open") {
				t.Errorf("%d: got %q", i, a.text())
			}
		}
	})
}

// TestWhatMayNotBeReadIsNotShownByAChange looks for a secret in all that changes of its file tell.
func TestWhatMayNotBeReadIsNotShownByAChange(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Profiles = map[string]Profile{"keys": {Allow: []string{"Read", "Edit", "MultiEdit", "Write"}, Deny: []string{"Read(./*.key)"}}}
	})
	f.sandbox.Put(session, "a.key", "first\nsecret\n")
	f.sandbox.Put(session, "a.txt", "first\nshown\n")
	with := func(id, tool, arguments string) *toolsv1.CallToolRequest {
		q := ask(id, tool, arguments)
		q.Profile = "keys"
		return q
	}
	texts := map[string]bool{}
	for i, q := range []*toolsv1.CallToolRequest{
		with("e1", "Edit", `{"file_path":"a.key","old_string":"first","new_string":"1"}`),
		with("e2", "Edit", `{"file_path":"a.key","old_string":"absent","new_string":"1"}`),
		with("e3", "Edit", `{"file_path":"a.key","old_string":"","new_string":"1"}`),
	} {
		texts[f.must(q, outcomeDenied).text()] = true
		if n := f.sandbox.Changes(q.GetCall().GetCallId()); n != 0 {
			t.Errorf("edit %d changed the file", i)
		}
	}
	if len(texts) != 1 {
		t.Errorf("the denials tell what the file has: %v", texts)
	}
	f.must(with("e4", "MultiEdit", `{"file_path":"a.key","edits":[{"old_string":"first","new_string":"1"}]}`), outcomeDenied)
	if got := f.must(with("e5", "Edit", `{"file_path":"a.txt","old_string":"first","new_string":"1"}`), outcomeOK).text(); !strings.Contains(got, "shown") {
		t.Errorf("the edit of another file: %q", got)
	}
	if got := f.must(with("e6", "Write", `{"file_path":"a.key","content":"new"}`), outcomeOK).text(); got != "The file /workspace/a.key has been updated." {
		t.Errorf("Write tells %q", got)
	}
}

func TestAsk(t *testing.T) {
	f := newFixture(t, nil)
	q := bashCall("a1", "out x")
	q.Profile = "ask-writes"
	asked, err := f.call(q)
	if err != nil || asked.ask.GetDigest() == "" || asked.ask.GetRule() != "ask Bash" || asked.decision.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK {
		t.Fatalf("got %+v, %v", asked, err)
	}
	if again, err := f.call(q); err != nil || again.ask.GetDigest() != asked.ask.GetDigest() {
		t.Fatalf("asked again: got %+v, %v", again, err)
	}
	wrong := approve(q, true, "")
	wrong.Approval.Digest = "0123"
	f.refused(wrong, "DIGEST_MISMATCH")
	if f.sandbox.Starts("a1") != 0 {
		t.Fatal("it ran before it was approved")
	}
	approved := approve(q, true, "")
	if approved.GetApproval().GetDigest() != asked.ask.GetDigest() {
		t.Fatal("the digest is not the one of the call")
	}
	a := f.must(approved, outcomeOK)
	if a.decision.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW || a.decision.GetRule() != "approved by ann: ask Bash" {
		t.Errorf("got decision %v", a.decision)
	}
	f.must(approved, outcomeOK)
	if f.sandbox.Starts("a1") != 1 {
		t.Error("it did not run once")
	}

	q = bashCall("a2", "out x")
	q.Profile = "ask-writes"
	refused := f.must(approve(q, false, "use make"), outcomeRefused)
	if !strings.Contains(refused.text(), "They said: use make") || f.sandbox.Starts("a2") != 0 {
		t.Errorf("got %q", refused.text())
	}

	q = bashCall("a3", "out x")
	q.Profile = "read-only"
	f.must(approve(q, true, ""), outcomeDenied)
}

func TestDelegated(t *testing.T) {
	f := newFixture(t, nil)
	todos := `{"todos":[{"content":"Run","status":"pending","activeForm":"Running"}]}`
	for range 2 {
		a, err := f.call(ask("d1", "TodoWrite", todos))
		if err != nil || a.delegated.GetTool() != "TodoWrite" || a.delegated.GetArgumentsJson() != todos {
			t.Fatalf("got %+v, %v", a, err)
		}
	}
	f.must(ask("d2", "TodoWrite", `{"todos":[{"content":"Run","status":"maybe","activeForm":"Running"}]}`), outcomeError)

	ok := &toolsv1.CallResult{Outcome: outcomeOK, DurationMs: 3, Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: "noted"}}}}}
	report := func(id string, r *toolsv1.CallResult) string {
		_, err := f.calls.ReportResult(t.Context(), &toolsv1.ReportResultRequest{Call: ref(id), Result: r})
		return apierr.Reason(err)
	}
	if got := report("d1", &toolsv1.CallResult{}); got != apierr.ReasonInvalidRequest {
		t.Errorf("a result without an outcome: got %q", got)
	}
	later := &toolsv1.CallResult{Outcome: ok.GetOutcome(), DurationMs: 9, Content: ok.GetContent()}
	for i, r := range []*toolsv1.CallResult{ok, ok, later} {
		if got := report("d1", r); got != "" {
			t.Errorf("report %d: got %s", i, got)
		}
	}
	if got := report("d1", &toolsv1.CallResult{Outcome: outcomeError}); got != "CALL_ID_REUSED" {
		t.Errorf("another result: got %q", got)
	}
	if got := f.must(ask("d1", "TodoWrite", todos), outcomeOK); got.text() != "noted" {
		t.Errorf("got %q", got.text())
	}
	if got := report("d9", ok); got != "CALL_NOT_FOUND" {
		t.Errorf("an unknown call: got %q", got)
	}
	f.must(bashCall("d3", "out x"), outcomeOK)
	if got := report("d3", ok); got != "CALL_NOT_DELEGATED" {
		t.Errorf("a call of ours: got %q", got)
	}
	if _, err := f.call(ask("d4", "TodoWrite", todos)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("d4")}); err != nil {
		t.Fatal(err)
	}
	if got := report("d4", ok); got != "CALL_CANCELLED" {
		t.Errorf("a cancelled call: got %q", got)
	}
}

func TestModesAndFilters(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Profiles = map[string]Profile{"work": {Allow: []string{"Read", "Bash(cat *)"}, Ask: []string{"Bash", "Write"}, Interrupt: []string{"Bash(rm -rf *)"}}}
	})
	f.sandbox.Put(session, "a", "text")
	in := func(mode commonv1.PermissionMode, q *toolsv1.CallToolRequest, filters ...*commonv1.PermissionRules) *toolsv1.CallToolRequest {
		q.Profile, q.Mode, q.Filters = "work", mode, filters
		return q
	}
	const edits, plan, bypass = commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS, commonv1.PermissionMode_PERMISSION_MODE_PLAN, commonv1.PermissionMode_PERMISSION_MODE_BYPASS

	a := f.must(in(0, bashCall("i1", "rm -rf x")), outcomeDenied)
	if !a.result.GetInterrupt() || !strings.Contains(a.text(), "the turn ends here") || f.sandbox.Starts("i1") != 0 {
		t.Errorf("got %v", a.result)
	}
	if again := f.must(in(0, bashCall("i1", "rm -rf x")), outcomeDenied); !again.result.GetInterrupt() {
		t.Error("the recorded result does not end the turn")
	}
	a = f.must(in(edits, ask("m1", "Write", `{"file_path":"b","content":"x"}`)), outcomeOK)
	if a.decision.GetRule() != "the mode accept-edits allows: ask Write" || f.sandbox.Changes("m1") != 1 {
		t.Errorf("got %v", a.decision)
	}
	if a, err := f.call(in(edits, bashCall("m2", "make"))); err != nil || a.ask == nil {
		t.Errorf("got %+v, %v", a, err)
	}
	a = f.must(in(plan, ask("m3", "Write", `{"file_path":"b","content":"x"}`)), outcomeDenied)
	if !strings.Contains(a.text(), "present the plan with ExitPlanMode") || a.result.GetInterrupt() {
		t.Errorf("got %q", a.text())
	}
	f.must(in(plan, ask("m4", "Read", `{"file_path":"a"}`)), outcomeOK)
	f.refused(in(bypass, bashCall("m5", "out x")), "BYPASS_NOT_ALLOWED")
	f.config.AllowBypass = true
	f.stop()
	f.start()
	f.must(in(bypass, bashCall("m5", "out x")), outcomeOK)
	f.must(in(bypass, bashCall("m6", "out x"), &commonv1.PermissionRules{}, &commonv1.PermissionRules{Deny: []string{"Bash(out *)"}}), outcomeDenied)

	_, err := f.call(in(0, bashCall("m7", "out x"), &commonv1.PermissionRules{}, &commonv1.PermissionRules{Deny: []string{"Read", "Bash("}}))
	bad, _ := apierr.Detail[*errdetails.BadRequest](err)
	if !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_INVALID_RULE) || len(bad.GetFieldViolations()) != 1 || bad.GetFieldViolations()[0].GetField() != "filters[1].deny[1]" {
		t.Errorf("got %v, %v", err, bad)
	}
	faults, err := f.calls.CheckAgents(t.Context(), &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{
		{Agent: "x", Profile: "work", Permissions: &commonv1.PermissionRules{Allow: []string{"Read"}, Interrupt: []string{"Read(../x)"}}},
	}})
	if err != nil || len(faults.GetFaults()) != 1 || faults.GetFaults()[0].GetField() != "permissions.interrupt[0]" {
		t.Errorf("got %v, %v", faults, err)
	}
}

func TestFiltersWithholdFromSearches(t *testing.T) {
	f := newFixture(t, nil)
	f.sandbox.Put(session, "secrets/key", "needle")
	f.sandbox.Put(session, "open", "needle")
	q := ask("w1", "Grep", `{"pattern":"needle"}`)
	q.Filters = []*commonv1.PermissionRules{{Deny: []string{"Read(secrets/**)"}}}
	if a := f.must(q, outcomeOK); strings.Contains(a.text(), "key") || !strings.Contains(a.text(), "open") {
		t.Errorf("got %q", a.text())
	}
}
