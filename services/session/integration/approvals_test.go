package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const (
	onlyThis    = commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE
	thisSession = commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION
	always      = commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS
)

// TestAnApprovalReachesToolsAsThePersonGaveIt answers through a restarted replica.
func TestAnApprovalReachesToolsAsThePersonGaveIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer *sessionv1.ResolveApprovalRequest
		want   *toolsv1.Approval
	}{
		"once":                      {&sessionv1.ResolveApprovalRequest{Approved: true}, &toolsv1.Approval{Approved: true}},
		"for the session":           {&sessionv1.ResolveApprovalRequest{Approved: true, Scope: thisSession}, &toolsv1.Approval{Approved: true, Scope: thisSession, Rule: "Write(./a)"}},
		"always, by its own rule":   {&sessionv1.ResolveApprovalRequest{Approved: true, Scope: always, Rule: "Write"}, &toolsv1.Approval{Approved: true, Scope: always, Rule: "Write"}},
		"with other arguments":      {&sessionv1.ResolveApprovalRequest{Approved: true, UpdatedArgumentsJson: `{"path":"b"}`}, &toolsv1.Approval{Approved: true, UpdatedArgumentsJson: `{"path":"b"}`}},
		"not, and the person says":  {&sessionv1.ResolveApprovalRequest{Comment: "use another file"}, &toolsv1.Approval{Comment: "use another file"}},
		"once, and the person says": {&sessionv1.ResolveApprovalRequest{Approved: true, Scope: onlyThis, Comment: "go on"}, &toolsv1.Approval{Approved: true, Scope: onlyThis, Comment: "go on"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, asking)
			s := f.session(t.Context(), t)
			turn := f.create(t.Context(), t, s, "write")
			ask := f.waitForAsk(t.Context(), t, s)
			if d := cmp.Diff([]string{"Write(./a)", "Write"}, ask.SuggestedRules); d != "" || ask.ExpireTime.AsTime().Before(time.Now()) {
				t.Errorf("the question has the rules %s and ends at %v", d, ask.ExpireTime.AsTime())
			}
			f.restart(t)
			c.answer.Parent, c.answer.CallId, c.answer.Digest = s, ask.CallId, ask.Digest
			if _, err := f.ResolveApproval(t.Context(), c.answer); err != nil {
				t.Fatal(err)
			}
			f.waitForEnd(t.Context(), t, turn.Name)
			c.want.Digest, c.want.User = ask.Digest, "default"
			if d := cmp.Diff(c.want, f.peers.approvals[ask.CallId], protocmp.Transform()); d != "" {
				t.Error(d)
			}
			var seen *sessionv1.ApprovalResolved
			var result string
			for _, e := range f.log(t.Context(), t, s) {
				if r := e.GetApprovalResolved(); r != nil {
					seen = r
				}
				if r := e.GetToolCallFinished(); r.GetCallId() == ask.CallId {
					result = fmt.Sprint(r.Content)
				}
			}
			if seen.GetScope() != c.want.Scope || seen.GetRule() != c.want.Rule || seen.GetUpdatedArgumentsJson() != c.want.UpdatedArgumentsJson || seen.GetComment() != c.want.Comment {
				t.Errorf("the event is %v", seen)
			}
			if got := strings.Contains(result, `allowed it with these: {\"path\":\"b\"}`); got != (c.want.UpdatedArgumentsJson != "") {
				t.Errorf("the model reads %s", result)
			}
		})
	}
}

func TestASecondApprovalLearnsOfTheFirst(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	s := f.session(t.Context(), t)
	turn := f.create(t.Context(), t, s, "write")
	ask := f.waitForAsk(t.Context(), t, s)
	answer := func(change func(*sessionv1.ResolveApprovalRequest)) error {
		r := &sessionv1.ResolveApprovalRequest{
			Parent: s, CallId: ask.CallId, Digest: ask.Digest, Approved: true, Scope: thisSession, Rule: "Write", UpdatedArgumentsJson: `{"path":"b"}`,
		}
		change(r)
		_, err := f.ResolveApproval(t.Context(), r)
		return err
	}
	same := func(*sessionv1.ResolveApprovalRequest) {}
	if err := answer(same); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after the turn"} {
		if err := answer(same); err != nil {
			t.Errorf("%s, the same: %v", when, err)
		}
		for name, change := range map[string]func(*sessionv1.ResolveApprovalRequest){
			"other arguments": func(r *sessionv1.ResolveApprovalRequest) { r.UpdatedArgumentsJson = `{"path":"c"}` },
			"another scope":   func(r *sessionv1.ResolveApprovalRequest) { r.Scope = always },
			"another rule":    func(r *sessionv1.ResolveApprovalRequest) { r.Rule = "Write(./a)" },
		} {
			err := answer(change)
			info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
			if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || info.GetMetadata()["scope"] != "SESSION" || info.GetMetadata()["rule"] != "Write" ||
				!strings.Contains(err.Error(), "allowed with other arguments") {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
		f.waitForEnd(t.Context(), t, turn.Name)
	}
}

func TestAnApprovalThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	s := f.session(t.Context(), t)
	f.create(t.Context(), t, s, "write")
	ask := f.waitForAsk(t.Context(), t, s)
	for name, c := range map[string]struct {
		answer *sessionv1.ResolveApprovalRequest
		field  string
	}{
		"a refusal for the session":        {&sessionv1.ResolveApprovalRequest{Scope: thisSession}, "scope"},
		"a refusal with arguments":         {&sessionv1.ResolveApprovalRequest{UpdatedArgumentsJson: "{}"}, "updated_arguments_json"},
		"a rule for one call":              {&sessionv1.ResolveApprovalRequest{Approved: true, Rule: "Write"}, "rule"},
		"a rule that was not suggested":    {&sessionv1.ResolveApprovalRequest{Approved: true, Scope: always, Rule: "Bash(rm *)"}, "rule"},
		"arguments that are no JSON":       {&sessionv1.ResolveApprovalRequest{Approved: true, UpdatedArgumentsJson: "path: b"}, "updated_arguments_json"},
		"arguments that are not an object": {&sessionv1.ResolveApprovalRequest{Approved: true, UpdatedArgumentsJson: "[1]"}, "updated_arguments_json"},
	} {
		c.answer.Parent, c.answer.CallId, c.answer.Digest = s, ask.CallId, ask.Digest
		_, err := f.ResolveApproval(t.Context(), c.answer)
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		if status.Code(err) != codes.InvalidArgument || len(bad.GetFieldViolations()) != 1 || bad.FieldViolations[0].Field != c.field {
			t.Errorf("%s: %v %v", name, err, bad)
		}
	}
	if got := f.peers.approvals[ask.CallId]; got != nil {
		t.Errorf("tools got %v", got)
	}
}
