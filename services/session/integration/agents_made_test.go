package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

// making are turns in which an agent makes others; the last text of a turn is what the model was told.
const making = `
turns:
  - when: make
    steps: [{tools: [{name: create_agent, input: {name: notes, description: Writes notes., prompt: Write notes., tools: [Read]}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: edit
    steps: [{tools: [{name: edit_agent, input: {name: notes, prompt: Write short notes.}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: stale
    steps: [{tools: [{name: edit_agent, input: {name: notes, version: 1, prompt: Write no notes.}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: more
    steps: [{tools: [{name: create_agent, input: {name: strong, description: x, prompt: x, tools: [Write]}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: breed
    steps: [{tools: [{name: create_agent, input: {name: breeder, description: x, prompt: x, tools: [create_agent]}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: model
    steps: [{tools: [{name: create_agent, input: {name: costly, description: x, prompt: x, tools: [], model: "play:other"}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: other
    steps: [{tools: [{name: edit_agent, input: {name: powerful, prompt: x}}]}, {text: ["{{ .LastToolResult }}"]}]
  - when: file
    steps: [{tools: [{name: edit_agent, input: {name: tester, prompt: x}}]}, {text: ["{{ .LastToolResult }}"]}]
`

func makers(c *session.Config) {
	c.Agents["maker"] = agent.Spec{
		Prompt: "Make agents.", Profile: "full", Tools: []string{"Bash", "Read", "create_agent", "edit_agent"}, Greeting: "Hello.",
		Network: []agent.NetworkRule{{Host: "a.example.com"}}, Mounts: []agent.Mount{{Name: "books"}}, TurnLimits: agent.TurnLimits{MaxSteps: 7},
		Extensions: agent.Extensions{Permissions: agent.Permissions{Deny: []string{"Bash(rm *)"}}},
	}
}

// told runs a turn of the agent maker, and returns what its model was told.
func (f *fixture) told(ctx context.Context, t *testing.T, message string) string {
	t.Helper()
	return f.toldIn(ctx, t, f.sessionOf(ctx, t, "maker").Name, message)
}

// toldIn is told in a session that exists.
func (f *fixture) toldIn(ctx context.Context, t *testing.T, session, message string) string {
	t.Helper()
	for _, e := range f.turn(ctx, t, session, message) {
		if end := e.GetTurnFinished(); end != nil {
			return end.GetFinalText()
		}
	}
	t.Fatal("the turn has no end")
	return ""
}

func TestAnAgentMakesAgentsThatCanDoNoMoreThanItself(t *testing.T) {
	t.Parallel()
	f := start(t, making, makers)
	olga := as(t.Context(), "olga", principal.RoleOperator)
	if got := f.told(olga, t, "make"); !strings.Contains(got, "agents/notes has version 1") {
		t.Fatal(got)
	}
	one, err := f.agents.GetAgentVersion(olga, &sessionv1.GetAgentVersionRequest{Name: "agents/notes/versions/1"})
	if err != nil {
		t.Fatal(err)
	}
	spec := one.Version.Spec
	if spec.Prompt != "Write notes." || spec.Description != "Writes notes." || spec.Profile != "full" || spec.Greeting != "" || spec.MaxSteps != 7 || one.Version.User != "olga" {
		t.Errorf("%v", one)
	}
	if d := cmp.Diff([]string{"Read"}, spec.Tools) + cmp.Diff([]*commonv1.Mount{{Name: "books"}}, spec.Mounts, protocmp.Transform()); d != "" || len(spec.Network) != 1 || spec.Network[0].Host != "a.example.com" {
		t.Error(d, spec.Network)
	}
	if got := spec.Permissions.GetDeny(); !slices.Equal(got, []string{"Bash(rm *)"}) {
		t.Errorf("it denies %v", got)
	}
	narrower, err := f.CreateSession(olga, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
		Agent: "agents/maker", Permissions: &commonv1.PermissionRules{Deny: []string{"Read"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.toldIn(olga, t, narrower.Session.Name, "edit"); !strings.Contains(got, "2 sets of permission rules") {
		t.Errorf("with rules of the session, too: %q", got)
	}
	if got := f.told(olga, t, "edit"); !strings.Contains(got, "agents/notes has version 2") {
		t.Error(got)
	}
	f.createAgent(olga, t, "powerful", &sessionv1.AgentSpec{Prompt: "x", Profile: "full", Tools: []string{"Bash", "Write"}})
	for message, want := range map[string]string{
		"stale": "newest version of agents/notes is 2", "make": "already", "more": "Write is not a tool", "breed": "create_agent is not a tool", "model": "not a model",
		"other": "other settings", "file": "configuration file",
	} {
		if got := f.told(olga, t, message); !strings.Contains(got, want) {
			t.Errorf("%s: the model is told %q", message, got)
		}
	}
	two, err := f.agents.ListAgentVersions(olga, &sessionv1.ListAgentVersionsRequest{Parent: "agents/notes"})
	if err != nil || len(two.Versions) != 2 || two.Versions[0].Spec.Prompt != "Write short notes." || two.Versions[0].Spec.Description != "Writes notes." {
		t.Errorf("%v, %v", two, err)
	}
	s := f.sessionOf(olga, t, "notes")
	if got := f.maxSteps(olga, t, s.Name); got != 7 {
		t.Errorf("a turn of the made agent has %d steps", got)
	}
	log := f.audited(as(t.Context(), "root", principal.RoleAdmin), t)
	for _, want := range []string{"olga AgentService.CreateAgent agents/notes OK", "olga AgentService.UpdateAgent agents/notes OK", "olga AgentService.CreateAgent  INVALID_ARGUMENT INVALID_SPEC"} {
		if !slices.Contains(log, want) {
			t.Errorf("the audit log lacks %q: %q", want, log)
		}
	}
}

func TestOnlyWhoMayMakeAgentsMakesThemByAnAgent(t *testing.T) {
	t.Parallel()
	f := start(t, making, makers)
	root, people := as(t.Context(), "root", principal.RoleAdmin), sessionv1.NewIdentityServiceClient(f.conn)
	limited := principal.Principal{Tenant: "default", User: "olga", Role: principal.RoleOperator, Scopes: []string{"sessions.write", "sessions.read"}}
	for name, ctx := range map[string]context.Context{
		"a user":                        as(t.Context(), "ann", principal.RoleUser),
		"an operator's key with scopes": principal.With(t.Context(), limited),
	} {
		if got := f.told(ctx, t, "make"); !strings.Contains(got, "may not make agents") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := people.CreateUser(root, &sessionv1.CreateUserRequest{UserId: "olga", User: &sessionv1.User{Role: commonv1.Role_ROLE_USER}}); err != nil {
		t.Fatal(err)
	}
	if got := f.told(as(t.Context(), "olga", principal.RoleOperator), t, "make"); !strings.Contains(got, "may not make agents") {
		t.Errorf("a user who was an operator when the turn began: %q", got)
	}
	if all, err := f.agents.ListAgents(root, &sessionv1.ListAgentsRequest{}); err != nil || slices.ContainsFunc(all.Agents, func(a *sessionv1.Agent) bool { return a.Name == "agents/notes" }) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestACallMakesOneVersionHoweverOftenItIsMade(t *testing.T) {
	t.Parallel()
	var st *faulty.Store
	f := startFaulty(t, making, func(s *faulty.Store) { st = s }, makers)
	olga := as(t.Context(), "olga", principal.RoleOperator)
	for version, message := range []string{"make", "edit"} {
		st.Fail(faulty.WriteAgent, 1, faulty.After, status.Error(codes.Unavailable, "the answer is lost"))
		want := fmt.Sprintf("agents/notes has version %d", version+1)
		if got := f.told(olga, t, message); !strings.Contains(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	all, err := f.agents.ListAgentVersions(olga, &sessionv1.ListAgentVersionsRequest{Parent: "agents/notes"})
	if err != nil || len(all.Versions) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}
