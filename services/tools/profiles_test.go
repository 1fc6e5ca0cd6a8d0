package tools

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

func (f *fixture) profiles() toolsv1.ProfileServiceClient {
	return toolsv1.NewProfileServiceClient(f.served())
}

func (f *fixture) grants() toolsv1.GrantServiceClient {
	return toolsv1.NewGrantServiceClient(f.served())
}

// served is a further connection to the service.
func (f *fixture) served() grpc.ClientConnInterface {
	return rpctest.Dial(f.t, f.service.RegisterPublic)
}

func rules(allow, ask, deny string) *toolsv1.Profile {
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ';' }) }
	return &toolsv1.Profile{Description: "for tests", Rules: &commonv1.PermissionRules{Allow: split(allow), Ask: split(ask), Deny: split(deny)}}
}

func TestProfilesByTheAPI(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Profiles = map[string]Profile{"mine": {Allow: []string{"Read"}}} })
	p, ctx := f.profiles(), t.Context()
	made, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("Bash(out *)", "", ""), RequestId: "r1"})
	if err != nil || made.GetProfile().GetSource() != toolsv1.ProfileSource_PROFILE_SOURCE_API || made.GetProfile().GetEtag() == "" {
		t.Fatalf("got %v, %v", made, err)
	}
	again, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("Bash(out *)", "", ""), RequestId: "r1"})
	if err != nil || again.GetProfile().GetEtag() != made.GetProfile().GetEtag() {
		t.Errorf("the repeated request: %v, %v", again, err)
	}
	for name, c := range map[string]struct {
		do   func() error
		code codes.Code
		want string
	}{
		"a name that is taken": {func() error {
			_, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("", "", "")})
			return err
		}, codes.AlreadyExists, "PROFILE_EXISTS"},
		"a name of the configuration": {func() error {
			_, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "mine", Profile: rules("", "", "")})
			return err
		}, codes.AlreadyExists, "PROFILE_EXISTS"},
		"another body under the request's id": {func() error {
			_, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("Read", "", ""), RequestId: "r1"})
			return err
		}, codes.AlreadyExists, "REQUEST_ID_REUSED"},
		"a faulty rule": {func() error {
			_, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "bad", Profile: rules("Read", "", "Bash(")})
			return err
		}, codes.InvalidArgument, "INVALID_RULE"},
		"too many rules": {func() error {
			_, err := p.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "big", Profile: rules(strings.Repeat("Bash("+strings.Repeat("x", 4000)+");", 70), "", "")})
			return err
		}, codes.InvalidArgument, "INVALID_RULE"},
		"a change of a built-in one": {func() error {
			_, err := p.UpdateProfile(ctx, &toolsv1.UpdateProfileRequest{Name: "profiles/full", Profile: rules("", "", "")})
			return err
		}, codes.FailedPrecondition, "PROFILE_READ_ONLY"},
		"the deletion of a configured one": {func() error {
			_, err := p.DeleteProfile(ctx, &toolsv1.DeleteProfileRequest{Name: "profiles/mine"})
			return err
		}, codes.FailedPrecondition, "PROFILE_READ_ONLY"},
		"a change of none": {func() error {
			_, err := p.UpdateProfile(ctx, &toolsv1.UpdateProfileRequest{Name: "profiles/none", Profile: rules("", "", "")})
			return err
		}, codes.NotFound, "PROFILE_NOT_FOUND"},
		"an old etag": {func() error {
			_, err := p.UpdateProfile(ctx, &toolsv1.UpdateProfileRequest{Name: "profiles/team", Etag: "old", Profile: rules("", "", "")})
			return err
		}, codes.Aborted, "PROFILE_CHANGED"},
		"a read of none": {func() error {
			_, err := p.GetProfile(ctx, &toolsv1.GetProfileRequest{Name: "profiles/none"})
			return err
		}, codes.NotFound, "PROFILE_NOT_FOUND"},
	} {
		if err := c.do(); apierr.Code(err) != c.code || apierr.Reason(err) != c.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var names []string
	for token := ""; ; {
		r, err := p.ListProfiles(ctx, &toolsv1.ListProfilesRequest{PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.GetProfiles() {
			names = append(names, fmt.Sprint(x.GetName(), " ", x.GetSource()))
		}
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	const builtin, file, api = " PROFILE_SOURCE_BUILTIN", " PROFILE_SOURCE_CONFIGURATION", " PROFILE_SOURCE_API"
	if want := []string{"profiles/ask-writes" + builtin, "profiles/full" + builtin, "profiles/mine" + file, "profiles/read-only" + builtin, "profiles/team" + api}; !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
	agents := &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{{Agent: "x", Profile: "team"}}}
	if r, err := f.calls.CheckAgents(ctx, agents); err != nil || len(r.GetFaults()) != 0 {
		t.Errorf("got %v, %v", r, err)
	}
	q := bashCall("a1", "out x")
	q.Profile = "team"
	f.must(q, outcomeOK)
	if _, err := p.DeleteProfile(ctx, &toolsv1.DeleteProfileRequest{Name: "profiles/team", Etag: made.GetProfile().GetEtag()}); err != nil {
		t.Fatal(err)
	}
	q.Call = ref("a2")
	f.refused(q, "PROFILE_NOT_FOUND")
	if r, err := f.calls.CheckAgents(ctx, agents); err != nil || len(r.GetFaults()) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestExplainCall(t *testing.T) {
	f := newAsking(t)
	f.must(granting(asking("x1", "exit 0"), forAlways, "Bash(exit *)"), outcomeOK)
	explain := func(change func(*toolsv1.ExplainCallRequest)) *toolsv1.ExplainCallResponse {
		t.Helper()
		q := &toolsv1.ExplainCallRequest{Name: "profiles/asking", Tool: "Bash"}
		change(q)
		r, err := f.profiles().ExplainCall(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := explain(func(q *toolsv1.ExplainCallRequest) { q.ArgumentsJson = `{"command":"exit 1"}` })
	if r.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW || len(r.GetGrants()) != 1 || r.GetGrants()[0].GetRule() != "Bash(exit *)" ||
		r.GetLayers()[0].GetRule() != "ask Bash(exit *)" || r.GetRemedy() != "" {
		t.Errorf("a granted call: %v", r)
	}
	r = explain(func(q *toolsv1.ExplainCallRequest) {
		q.ArgumentsJson, q.Filters = `{"command":"out a"}`, []*commonv1.PermissionRules{{}, {Interrupt: []string{"Bash(out *)"}}}
	})
	if r.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY || !r.GetInterrupt() || r.GetLayers()[2].GetLayer() != "filters[1]" || !strings.Contains(r.GetRemedy(), "Only without the rule") {
		t.Errorf("an interrupted call: %v", r)
	}
	r = explain(func(q *toolsv1.ExplainCallRequest) { q.ArgumentsJson = `{"command":"git push origin; out x"}` })
	if r.GetRule() != `no rule of the profile asking allows the command "git push origin"` || !slices.Contains(r.GetSuggestedRules(), "Bash(git push *)") {
		t.Errorf("what no rule allows: %v", r)
	}
	r = explain(func(q *toolsv1.ExplainCallRequest) {
		q.Tool, q.ArgumentsJson = "Write", `{"file_path":"src/a","content":""}`
	})
	if r.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK || strings.Join(r.GetSuggestedRules(), " ") != "Write(./src/a) Write(./src/**)" {
		t.Errorf("a question: %v", r)
	}
	r = explain(func(q *toolsv1.ExplainCallRequest) {
		q.Name, q.Tool, q.Mode = "profiles/full", "Write", commonv1.PermissionMode_PERMISSION_MODE_PLAN
	})
	if !strings.Contains(r.GetRemedy(), "Another mode") {
		t.Errorf("the mode plan: %v", r)
	}
	deep := strings.Repeat("$(", 2000) + "ls" + strings.Repeat(")", 2000)
	r = explain(func(q *toolsv1.ExplainCallRequest) {
		q.Name, q.ArgumentsJson = "profiles/full", `{"command":"`+deep+`"}`
		q.Filters = []*commonv1.PermissionRules{{Allow: []string{"Bash(ls *)", "Bash(cat *)"}}}
	})
	if r.GetDecision() != toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY || !strings.Contains(r.GetRule(), "it nests more than") {
		t.Errorf("nested substitutions are %v", r)
	}
	if _, err := f.profiles().ExplainCall(t.Context(), &toolsv1.ExplainCallRequest{Name: "profiles/full", Tool: "Bash", ArgumentsJson: "{"}); apierr.Code(err) != codes.InvalidArgument {
		t.Errorf("faulty arguments: %v", err)
	}
	if f.sandbox.Starts("x1") != 1 {
		t.Error("an explanation ran something")
	}
}

func TestGrantsByTheAPI(t *testing.T) {
	f := newAsking(t)
	as := func(user string, role principal.Role) context.Context {
		return principal.With(t.Context(), principal.Principal{Tenant: "default", User: user, Role: role})
	}
	grants := f.service.grants
	f.must(granting(asking("b1", "exit 0"), forAlways, "Bash(exit *)"), outcomeOK)
	f.must(granting(asking("b2", "fail"), forSession, "Bash(fail *)"), outcomeOK)
	list := func(ctx context.Context, session string) []string {
		r, err := grants.ListGrants(ctx, &toolsv1.ListGrantsRequest{Session: session})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, g := range r.GetGrants() {
			all = append(all, g.GetRule()+" "+g.GetSession())
		}
		return all
	}
	if got := list(as("default", principal.RoleUser), ""); !slices.Equal(got, []string{"Bash(fail *) " + session, "Bash(exit *) "}) {
		t.Errorf("got %v", got)
	}
	if got := list(as("eve", principal.RoleUser), ""); len(got) != 0 {
		t.Errorf("another user sees %v", got)
	}
	if got := list(as("op", principal.RoleOperator), session); len(got) != 1 {
		t.Errorf("an operator sees %v", got)
	}
	r, err := f.grants().ListGrants(t.Context(), &toolsv1.ListGrantsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	name := r.GetGrants()[1].GetName()
	if _, err := grants.DeleteGrant(as("eve", principal.RoleUser), &toolsv1.DeleteGrantRequest{Name: name}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_GRANT_NOT_FOUND) {
		t.Errorf("another user deletes it: %v", err)
	}
	f.must(asking("b3", "exit 0"), outcomeOK)
	for range 2 {
		if _, err := f.grants().DeleteGrant(t.Context(), &toolsv1.DeleteGrantRequest{Name: name, RequestId: "r1"}); err != nil {
			t.Fatal(err)
		}
	}
	f.asks(asking("b4", "exit 0"))
	f.must(asking("b5", "fail"), outcomeOK)
	if _, err := f.calls.DeleteUserGrants(t.Context(), &toolsv1.DeleteUserGrantsRequest{}); err != nil {
		t.Fatal(err)
	}
	f.asks(asking("b6", "fail"))
}

// TestTwoReplicasSeeAChangeAtOnce changes a profile and gives a grant on one of two replicas
// that share a database, between calls on both.
func TestTwoReplicasSeeAChangeAtOnce(t *testing.T) {
	url := pgtest.New(t)
	f := newFixture(t, func(c *Config) { c.DatabaseURL = config.Secret(url) })
	other, err := New(t.Context(), f.config, Deps{Sandbox: f.conn, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	ctx := t.Context()
	there := toolsv1.NewProfileServiceClient(rpctest.Dial(t, other.RegisterPublic))
	one := func(id string) *toolsv1.CallToolRequest {
		q := bashCall(id, "out x")
		q.Profile = "team"
		return q
	}
	if _, err := there.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("", "Bash", "")}); err != nil {
		t.Fatal(err)
	}
	f.asks(one("c1"))
	if _, err := there.UpdateProfile(ctx, &toolsv1.UpdateProfileRequest{Name: "profiles/team", Profile: rules("Bash", "", "")}); err != nil {
		t.Fatal(err)
	}
	f.must(one("c2"), outcomeOK)
	if _, err := there.DeleteProfile(ctx, &toolsv1.DeleteProfileRequest{Name: "profiles/team"}); err != nil {
		t.Fatal(err)
	}
	f.refused(one("c3"), "PROFILE_NOT_FOUND")
	if _, err := there.CreateProfile(ctx, &toolsv1.CreateProfileRequest{ProfileId: "team", Profile: rules("", "Bash", "")}); err != nil {
		t.Fatal(err)
	}
	f.asks(one("c4"))
	calls := toolsv1.NewCallServiceClient(rpctest.Dial(t, other.RegisterPeer))
	stream, err := calls.CallTool(ctx, granting(one("c5"), forAlways, ""))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := drain(stream); err != nil || a.result.GetOutcome() != outcomeOK {
		t.Fatalf("got %v, %v", a.result, err)
	}
	f.must(one("c6"), outcomeOK)
}
