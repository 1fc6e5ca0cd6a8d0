package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// fixer is a spec that fits the fake tools service.
func fixer(maxSteps int32) *sessionv1.AgentSpec {
	return &sessionv1.AgentSpec{Prompt: "Fix it.", Profile: "full", Tools: []string{"Bash", "Read"}, Greeting: "Hello.", MaxSteps: maxSteps}
}

func (f *fixture) createAgent(ctx context.Context, t *testing.T, id string, spec *sessionv1.AgentSpec) *sessionv1.Agent {
	t.Helper()
	resp, err := f.agents.CreateAgent(ctx, &sessionv1.CreateAgentRequest{AgentId: id, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Agent
}

// sessionOf makes a session of an agent.
func (f *fixture) sessionOf(ctx context.Context, t *testing.T, agent string) *sessionv1.Session {
	t.Helper()
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: agent}})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// maxSteps runs a turn, and returns its limit of model calls, which tells which spec it had.
func (f *fixture) maxSteps(ctx context.Context, t *testing.T, session string) int32 {
	t.Helper()
	for _, e := range f.turn(ctx, t, session, "go") {
		if started := e.GetTurnStarted(); started != nil {
			return started.Limits.MaxSteps
		}
	}
	t.Fatal("no turn.started")
	return 0
}

// refusedAs fails the test unless err has the code and the reason.
func refusedAs(t *testing.T, what string, err error, code codes.Code, reason sessionv1.ErrorReason) {
	t.Helper()
	if got := status.Code(err); got != code || !apierr.Is(err, reason) || len(apierr.Message(err)) < 30 {
		t.Errorf("%s: %v, want %v with %s", what, err, code, apierr.Name(reason))
	}
}

func TestASessionKeepsTheVersionOfItsAgent(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	made := f.createAgent(ctx, t, "fixer", fixer(3))
	if made.Name != "agents/fixer" || made.Version != 1 || made.Model != "play:test" || made.CreateTime == nil || made.ArchiveTime != nil {
		t.Errorf("created %v", made)
	}
	first := f.sessionOf(ctx, t, "fixer")
	updated, err := f.agents.UpdateAgent(ctx, &sessionv1.UpdateAgentRequest{Name: "agents/fixer", ExpectedVersion: 1, Spec: fixer(5)})
	if err != nil || updated.Agent.Version != 2 || updated.Agent.Revision == made.Revision {
		t.Fatalf("updated: %v, %v", updated, err)
	}
	second := f.sessionOf(ctx, t, "agents/fixer")
	back, err := f.agents.RollbackAgent(ctx, &sessionv1.RollbackAgentRequest{Name: "agents/fixer", Version: 1, ExpectedVersion: 2})
	if err != nil || back.Agent.Version != 3 || back.Agent.Revision != made.Revision {
		t.Fatalf("rolled back: %v, %v", back, err)
	}
	third := f.sessionOf(ctx, t, "fixer")
	f.restart(t)
	for i, s := range []*sessionv1.Session{first, second, third} {
		if s.AgentVersion != int32(i)+1 {
			t.Errorf("session %d has version %d", i+1, s.AgentVersion)
		}
		if got, want := f.maxSteps(ctx, t, s.Name), []int32{3, 5, 3}[i]; got != want {
			t.Errorf("a turn of session %d has %d steps, want %d", i+1, got, want)
		}
	}
	versions, err := f.agents.ListAgentVersions(ctx, &sessionv1.ListAgentVersionsRequest{Parent: "agents/fixer", PageSize: 2})
	if err != nil || len(versions.Versions) != 2 || versions.Versions[0].RestoredFrom != 1 || versions.NextPageToken == "" {
		t.Fatalf("versions: %v, %v", versions, err)
	}
	rest, err := f.agents.ListAgentVersions(ctx, &sessionv1.ListAgentVersionsRequest{Parent: "agents/fixer", PageToken: versions.NextPageToken})
	if err != nil || len(rest.Versions) != 1 || rest.NextPageToken != "" {
		t.Fatalf("the last page: %v, %v", rest, err)
	}
	one, err := f.agents.GetAgentVersion(ctx, &sessionv1.GetAgentVersionRequest{Name: "agents/fixer/versions/1"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fixer(3), one.Version.Spec, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func TestAFaultySpecIsRefusedWithItsFields(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	f.createAgent(t.Context(), t, "fixer", fixer(3))
	twice := named("books", "books")
	f.peers.lack("Telepathy")
	for want, change := range map[string]func(*sessionv1.AgentSpec){
		"spec.model":                            func(s *sessionv1.AgentSpec) { s.Model = "unknown:model" },
		"spec.tools":                            func(s *sessionv1.AgentSpec) { s.Tools = append(s.Tools, "Telepathy") },
		"spec.network":                          func(s *sessionv1.AgentSpec) { s.Network = []*sessionv1.AgentNetworkRule{{Host: "a", Tls: "x"}} },
		"spec.limits":                           func(s *sessionv1.AgentSpec) { s.Limits = &sessionv1.AgentLimits{MemoryBytes: -1} },
		"spec.mounts":                           func(s *sessionv1.AgentSpec) { s.Mounts = twice },
		"spec.repositories":                     func(s *sessionv1.AgentSpec) { s.Repositories = []*sessionv1.AgentRepository{{Url: "file:///etc"}} },
		"spec.output_schema_json":               func(s *sessionv1.AgentSpec) { s.OutputSchemaJson = "{" },
		"spec.verdict":                          func(s *sessionv1.AgentSpec) { s.Verdict = "maybe" },
		"spec.checkpoints":                      func(s *sessionv1.AgentSpec) { s.Checkpoints = &sessionv1.AgentCheckpoints{Tools: []string{"*x"}} },
		"spec.mounts, spec.verdict, spec.model": func(s *sessionv1.AgentSpec) { s.Model, s.Verdict, s.Mounts = "unknown:model", "maybe", twice },
	} {
		spec := fixer(3)
		change(spec)
		_, created := f.agents.CreateAgent(t.Context(), &sessionv1.CreateAgentRequest{AgentId: "odd", Spec: spec})
		_, updated := f.agents.UpdateAgent(t.Context(), &sessionv1.UpdateAgentRequest{Name: "agents/fixer", ExpectedVersion: 1, Spec: spec})
		for _, err := range []error{created, updated} {
			refusedAs(t, want, err, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC)
			detail, _ := apierr.Detail[*errdetails.BadRequest](err)
			var fields []string
			for _, v := range detail.GetFieldViolations() {
				fields = append(fields, v.Field)
			}
			wanted := strings.Split(want, ", ")
			slices.Sort(fields)
			slices.Sort(wanted)
			if !slices.Equal(fields, wanted) {
				t.Errorf("%s: the error names %v", want, fields)
			}
		}
	}
	if _, err := f.agents.GetAgent(t.Context(), &sessionv1.GetAgentRequest{Name: "agents/odd"}); status.Code(err) != codes.NotFound {
		t.Errorf("a refused agent: %v", err)
	}
	if a, err := f.agents.GetAgent(t.Context(), &sessionv1.GetAgentRequest{Name: "agents/fixer"}); err != nil || a.Agent.Version != 1 {
		t.Errorf("after refused updates: %v, %v", a, err)
	}
}

func TestAChangeOfAnAgentMayBeRefused(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	f.createAgent(ctx, t, "fixer", fixer(3))
	update := func(name string, expected int32) error {
		_, err := f.agents.UpdateAgent(ctx, &sessionv1.UpdateAgentRequest{Name: name, ExpectedVersion: expected, Spec: fixer(4)})
		return err
	}
	archive := func(name string, undo bool) error {
		_, err := f.agents.ArchiveAgent(ctx, &sessionv1.ArchiveAgentRequest{Name: name, Undo: undo})
		return err
	}
	create := func(id string) error {
		_, err := f.agents.CreateAgent(ctx, &sessionv1.CreateAgentRequest{AgentId: id, Spec: fixer(4)})
		return err
	}
	rollback := func(name string, to int32) error {
		_, err := f.agents.RollbackAgent(ctx, &sessionv1.RollbackAgentRequest{Name: name, Version: to, ExpectedVersion: 1})
		return err
	}
	conflict := update("agents/fixer", 7)
	info, _ := apierr.Detail[*errdetails.ErrorInfo](conflict)
	if info.GetMetadata()["version"] != "1" {
		t.Errorf("the conflict has %v", info)
	}
	if err := archive("agents/fixer", false); err != nil {
		t.Fatal(err)
	}
	_, session := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "fixer"}})
	for what, c := range map[string]struct {
		err    error
		code   codes.Code
		reason sessionv1.ErrorReason
	}{
		"an old version":                 {conflict, codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_VERSION_CONFLICT},
		"an archived agent":              {update("agents/fixer", 1), codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED},
		"a session of an archived agent": {session, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED},
		"a name of the file":             {create("coder"), codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS},
		"a name that is taken":           {create("fixer"), codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS},
		"an agent of the file":           {update("agents/coder", 1), codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_READ_ONLY},
		"archiving one of the file":      {archive("agents/coder", false), codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_READ_ONLY},
		"rolling back one of the file":   {rollback("agents/coder", 1), codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_READ_ONLY},
		"no agent":                       {update("agents/none", 1), codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND},
		"archiving no agent":             {archive("agents/none", false), codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND},
		"rolling back to no version":     {rollback("agents/fixer", 9), codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_VERSION_NOT_FOUND},
		"rolling back no agent":          {rollback("agents/none", 1), codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND},
	} {
		refusedAs(t, what, c.err, c.code, c.reason)
	}
	if err := archive("agents/fixer", true); err != nil {
		t.Fatal(err)
	}
	if err := update("agents/fixer", 1); err != nil {
		t.Errorf("an agent that was brought back: %v", err)
	}
}

func TestAgentsAreListedWithThoseOfTheFile(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	for i := range 4 {
		f.createAgent(ctx, t, fmt.Sprintf("b%d", i), fixer(3))
	}
	if _, err := f.agents.ArchiveAgent(ctx, &sessionv1.ArchiveAgentRequest{Name: "agents/b1"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		archived bool
		want     string
	}{
		"active": {false, "assistant b0 b2 b3 coder tester"},
		"all":    {true, "assistant b0 b1 b2 b3 coder tester"},
	} {
		var ids []string
		for token := ""; ; {
			resp, err := f.agents.ListAgents(ctx, &sessionv1.ListAgentsRequest{PageSize: 2, PageToken: token, ShowArchived: c.archived})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range resp.Agents {
				ids = append(ids, strings.TrimPrefix(a.Name, "agents/"))
			}
			if token = resp.NextPageToken; token == "" {
				break
			}
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	other := principal.With(ctx, principal.Principal{Tenant: "globex", User: "eve", Role: principal.RoleOperator})
	if resp, err := f.agents.ListAgents(other, &sessionv1.ListAgentsRequest{}); err != nil || len(resp.Agents) != 3 {
		t.Errorf("another tenant sees %v, %v", resp, err)
	}
	_, err := f.agents.GetAgent(other, &sessionv1.GetAgentRequest{Name: "agents/b0"})
	refusedAs(t, "another tenant", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND)
	_, err = f.CreateSession(other, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "b0"}})
	refusedAs(t, "a session of another tenant's agent", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND)
}

func TestOnlyOperatorsChangeAgents(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	f.createAgent(t.Context(), t, "fixer", fixer(3))
	ann := principal.With(t.Context(), principal.Principal{Tenant: "default", User: "ann", Role: principal.RoleUser})
	_, create := f.agents.CreateAgent(ann, &sessionv1.CreateAgentRequest{Spec: fixer(4)})
	_, update := f.agents.UpdateAgent(ann, &sessionv1.UpdateAgentRequest{Name: "agents/fixer", ExpectedVersion: 1, Spec: fixer(4)})
	_, version := f.agents.GetAgentVersion(ann, &sessionv1.GetAgentVersionRequest{Name: "agents/fixer/versions/1"})
	for _, err := range []error{create, update, version} {
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("a user: %v", err)
		}
	}
	if f.sessionOf(ann, t, "fixer").AgentVersion != 1 {
		t.Error("a user has no session of the agent")
	}
}

func TestARepeatedChangeOfAnAgentIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	for range 2 {
		if a, err := f.agents.CreateAgent(t.Context(), &sessionv1.CreateAgentRequest{AgentId: "fixer", Spec: fixer(3), RequestId: "c"}); err != nil || a.Agent.Version != 1 {
			t.Fatalf("%v, %v", a, err)
		}
		if a, err := f.agents.UpdateAgent(t.Context(), &sessionv1.UpdateAgentRequest{Name: "agents/fixer", ExpectedVersion: 1, Spec: fixer(4), RequestId: "u"}); err != nil || a.Agent.Version != 2 {
			t.Fatalf("%v, %v", a, err)
		}
	}
	_, err := f.agents.CreateAgent(t.Context(), &sessionv1.CreateAgentRequest{AgentId: "fixer", Spec: fixer(5), RequestId: "c"})
	refusedAs(t, "another request", err, codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED)
}
