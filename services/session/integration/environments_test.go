package integration

import (
	"context"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func (f *fixture) environments() sessionv1.EnvironmentServiceClient {
	return sessionv1.NewEnvironmentServiceClient(f.conn)
}

// environment creates an environment and returns its name.
func (f *fixture) environment(ctx context.Context, t *testing.T, id string, spec *sessionv1.EnvironmentSpec) string {
	t.Helper()
	made, err := f.environments().CreateEnvironment(ctx, &sessionv1.CreateEnvironmentRequest{EnvironmentId: id, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return made.Environment.Name
}

// sandboxOf makes a session and returns what a turn of it asks the sandbox for.
func (f *fixture) sandboxOf(ctx context.Context, t *testing.T, s *sessionv1.Session) *sandboxv1.EnsureWorkspaceRequest {
	t.Helper()
	f.turn(ctx, t, s.Name, "tools")
	got := f.peers.lastWanted()
	if got.GetEnvironment() == nil || got.GetCall().GetSession() != s.Name {
		t.Fatalf("the workspace is asked for by %v", got)
	}
	return got
}

func TestASessionHasTheSandboxOfItsEnvironment(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	prod := &sessionv1.EnvironmentSpec{
		Network: []*sessionv1.AgentNetworkRule{{Host: "prod.example.com"}}, Limits: &sessionv1.AgentLimits{Processes: 7},
		Mounts: []*commonv1.Mount{{Name: "books", Alias: "mnt/b"}}, Variables: map[string]string{"STAGE": "prod", "REGION": "north"},
	}
	f.environment(ctx, t, "prod", prod)
	f.environment(ctx, t, "test", &sessionv1.EnvironmentSpec{Variables: map[string]string{"STAGE": "test"}})
	spec := fixer(3)
	spec.Environment = "environments/test"
	spec.Network = []*sessionv1.AgentNetworkRule{{Host: "agent.example.com"}}
	f.createAgent(ctx, t, "fixer", spec)
	users := sessionv1.NewUserServiceClient(f.conn)
	if _, err := users.SetUserVariable(ctx, &sessionv1.SetUserVariableRequest{Name: "users/default/variables/REGION", Value: "mine"}); err != nil {
		t.Fatal(err)
	}
	of := func(environment string) *sessionv1.Session {
		made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "fixer", Environment: environment}})
		if err != nil {
			t.Fatal(err)
		}
		return made.Session
	}
	inProd, inTest := of("prod"), of("")
	if inProd.Environment != "environments/prod" || inProd.EnvironmentVersion != 1 || inTest.Environment != "environments/test" || inProd.AgentVersion != 1 {
		t.Errorf("the sessions are %v and %v", inProd, inTest)
	}
	prod.Limits.Processes = 9
	if _, err := f.environments().UpdateEnvironment(ctx, &sessionv1.UpdateEnvironmentRequest{Name: "environments/prod", Spec: prod, ExpectedVersion: 1}); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	got := f.sandboxOf(ctx, t, inProd)
	if rules := got.Network.Rules; len(rules) != 1 || rules[0].Host != "prod.example.com" || got.Limits.Processes != 7 || len(got.Mounts.Mounts) != 1 || got.Mounts.Mounts[0].GetName() != "books" || got.Mounts.Mounts[0].GetAlias() != "mnt/b" ||
		got.Environment.Variables["STAGE"] != "prod" || got.Environment.Variables["REGION"] != "mine" {
		t.Errorf("in prod the sandbox is asked for %v", got)
	}
	if got := f.sandboxOf(ctx, t, inTest); len(got.Network.Rules) != 0 || got.Environment.Variables["STAGE"] != "test" {
		t.Errorf("in test the sandbox is asked for %v", got)
	}
	if again := of("prod"); again.EnvironmentVersion != 2 || f.sandboxOf(ctx, t, again).Limits.Processes != 9 {
		t.Errorf("a new session has %v", again)
	}
}

func TestAnEnvironmentMayBeRefused(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	name := f.environment(ctx, t, "prod", &sessionv1.EnvironmentSpec{Variables: map[string]string{"A": "1"}})
	for field, spec := range map[string]*sessionv1.EnvironmentSpec{
		"spec.network":   {Network: []*sessionv1.AgentNetworkRule{{}}},
		"spec.limits":    {Limits: &sessionv1.AgentLimits{MemoryBytes: -1}},
		"spec.mounts":    {Mounts: []*commonv1.Mount{{Name: "books"}, {Name: "books"}}},
		"spec.variables": {Variables: map[string]string{"PATH": "x"}},

		"spec.metadata_json": {MetadataJson: "{"},
	} {
		_, err := f.environments().UpdateEnvironment(ctx, &sessionv1.UpdateEnvironmentRequest{Name: name, Spec: spec, ExpectedVersion: 1})
		refusedAs(t, field, err, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC)
		if detail, _ := apierr.Detail[*errdetails.BadRequest](err); len(detail.GetFieldViolations()) != 1 || detail.FieldViolations[0].Field != field {
			t.Errorf("%s: %v", field, detail)
		}
	}
	_, conflict := f.environments().UpdateEnvironment(ctx, &sessionv1.UpdateEnvironmentRequest{Name: name, Spec: &sessionv1.EnvironmentSpec{}, ExpectedVersion: 5})
	_, taken := f.environments().CreateEnvironment(ctx, &sessionv1.CreateEnvironmentRequest{EnvironmentId: "prod", Spec: &sessionv1.EnvironmentSpec{}})
	_, none := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "none"}})
	spec := fixer(1)
	spec.Environment = "environments/none"
	_, agent := f.agents.CreateAgent(ctx, &sessionv1.CreateAgentRequest{Spec: spec})
	other := principal.With(ctx, principal.Principal{Tenant: "globex", User: "eve", Role: principal.RoleOperator})
	_, foreign := f.environments().GetEnvironment(other, &sessionv1.GetEnvironmentRequest{Name: name})
	_, named := f.CreateSession(other, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "prod"}})
	if _, err := f.environments().ArchiveEnvironment(ctx, &sessionv1.ArchiveEnvironmentRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	_, archived := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Environment: "prod"}})
	for what, c := range map[string]struct {
		err    error
		code   codes.Code
		reason sessionv1.ErrorReason
	}{
		"an old version":       {conflict, codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_VERSION_CONFLICT},
		"a name that is taken": {taken, codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS},
		"no environment":       {none, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_ENVIRONMENT_NOT_FOUND},
		"an agent in none":     {agent, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC},
		"another tenant":       {foreign, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_ENVIRONMENT_NOT_FOUND},
		"another tenant's":     {named, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_ENVIRONMENT_NOT_FOUND},
		"an archived one":      {archived, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED},
	} {
		refusedAs(t, what, c.err, c.code, c.reason)
	}
	list, err := f.environments().ListEnvironments(ctx, &sessionv1.ListEnvironmentsRequest{ShowArchived: true})
	if err != nil || len(list.Environments) != 1 || list.Environments[0].Spec.Variables != nil {
		t.Errorf("the list is %v, %v", list, err)
	}
	agents, err := f.agents.ListAgents(ctx, &sessionv1.ListAgentsRequest{ShowArchived: true})
	if err != nil || len(agents.Agents) != 3 {
		t.Errorf("the agents are %v, %v", agents, err)
	}
}
