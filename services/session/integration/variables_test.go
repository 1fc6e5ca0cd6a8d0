package integration

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// lastWanted is what a workspace was last asked to be.
func (p *peers) lastWanted() *sandboxv1.EnsureWorkspaceRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wanted) == 0 {
		return nil
	}
	return p.wanted[len(p.wanted)-1]
}

func TestMeIsTheCaller(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	users := sessionv1.NewUserServiceClient(f.conn)
	for _, user := range []string{"ann", "bob"} {
		ctx := as(t.Context(), user, principal.RoleUser)
		if _, err := users.SetUserVariable(ctx, &sessionv1.SetUserVariableRequest{Name: "users/me/variables/OF_" + strings.ToUpper(user), Value: "1"}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"users/me", "users/" + user} {
			all, err := users.ListUserVariables(ctx, &sessionv1.ListUserVariablesRequest{Parent: name})
			if err != nil || len(all.Variables) != 1 || all.Variables[0].Name != "users/"+user+"/variables/OF_"+strings.ToUpper(user) {
				t.Errorf("%s as %s has %v, %v", name, user, all, err)
			}
		}
	}
}

func TestCommandsGetTheVariablesOfWhoeverActs(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	users := sessionv1.NewUserServiceClient(f.conn)
	ann := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleOperator})
	bob := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "bob", Role: principal.RoleOperator})
	for name, value := range map[string]string{"TOKEN": "of ann", "REGION": "north"} {
		if _, err := users.SetUserVariable(ann, &sessionv1.SetUserVariableRequest{Name: "users/ann/variables/" + name, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	s := f.session(ann, t)
	get := func(who context.Context, want map[string]string) {
		t.Helper()
		f.turn(who, t, s, "tools")
		if e := f.peers.lastWanted().GetEnvironment(); e == nil || !maps.Equal(e.Variables, want) {
			t.Errorf("commands get %v, want %v", e, want)
		}
	}
	get(ann, map[string]string{"TOKEN": "of ann", "REGION": "north"})
	get(bob, nil)
	f.restart(t)
	users = sessionv1.NewUserServiceClient(f.conn)
	if _, err := users.DeleteUserVariable(ann, &sessionv1.DeleteUserVariableRequest{Name: "users/ann/variables/TOKEN"}); err != nil {
		t.Fatal(err)
	}
	get(ann, map[string]string{"REGION": "north"})
}

// What another user asks for in the middle of a turn leaves the turn its user's variables.
func TestATurnKeepsItsVariablesWhateverOthersAskFor(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(f *fixture, bob context.Context, s string) error{
		"a checkpoint": func(f *fixture, bob context.Context, s string) error {
			_, err := f.points().CreateCheckpoint(bob, &sessionv1.CreateCheckpointRequest{Parent: s})
			return err
		},
		"a repository": func(f *fixture, bob context.Context, s string) error {
			_, err := sessionv1.NewRepositoryServiceClient(f.conn).AddRepository(bob, &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/app"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, strings.ReplaceAll(building, "command: two", "command: block"))
			ctx := deadline(t)
			ann := principal.With(ctx, principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleOperator})
			bob := principal.With(ctx, principal.Principal{Tenant: "acme", User: "bob", Role: principal.RoleOperator})
			users := sessionv1.NewUserServiceClient(f.conn)
			if _, err := users.SetUserVariable(ann, &sessionv1.SetUserVariableRequest{Name: "users/ann/variables/TOKEN", Value: "of ann"}); err != nil {
				t.Fatal(err)
			}
			s := f.session(ann, t)
			turn := f.create(ann, t, s, "build")
			call := <-f.peers.blocked
			updated := func() (time.Time, error) {
				got, err := f.GetSession(ann, &sessionv1.GetSessionRequest{Name: s})
				return got.GetSession().GetUpdateTime().AsTime(), err
			}
			quiet, err := updated()
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan error, 1)
			go func() { asked <- ask(f, bob, s) }()
			until(ann, t, updated, func(at time.Time) bool { return at.After(quiet) || len(asked) > 0 }) // in the inbox, or done
			f.peers.release(call)
			f.waitForEnd(ann, t, turn.Name)
			if err := <-asked; err != nil {
				t.Error(err)
			}
			f.peers.mu.Lock()
			defer f.peers.mu.Unlock()
			if has := f.peers.environment; !maps.Equal(has, map[string]string{"TOKEN": "of ann"}) {
				t.Errorf("in the end the turn's commands have %v", has)
			}
		})
	}
}

// talking has a turn whose second step is under way until it is released, with enough before it
// to be shortened, and goes on with a command.
var talking = `
turns:` + summarizes + `
  - when: conversation so far
    steps: [{text: [lost]}, {tools: [{name: Bash, input: {command: after}}]}, {text: [done]}]
  - when: talk
    steps:
      - text: ["` + filler + `"]
        tools: [{name: Read, input: {n: 1}}]
      - tools: [{name: Bash, input: {command: block}}]
`

// withToken is a user with a variable that tells whose it is.
func (f *fixture) withToken(ctx context.Context, t *testing.T, user string) context.Context {
	t.Helper()
	ctx = principal.With(ctx, principal.Principal{Tenant: "acme", User: user, Role: principal.RoleOperator})
	set := &sessionv1.SetUserVariableRequest{Name: "users/" + user + "/variables/TOKEN", Value: "of " + user}
	if _, err := sessionv1.NewUserServiceClient(f.conn).SetUserVariable(ctx, set); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// The hook of a compaction that another user asks for has that user's variables, and the
// commands after it have those of the turn's own again.
func TestATurnHasItsVariablesAgainAfterAnothersCompaction(t *testing.T) {
	t.Parallel()
	f := start(t, talking, withSpec(func(s *agent.Spec) { s.PreCompaction = "cat notes" }))
	ctx := deadline(t)
	ann, bob := f.withToken(ctx, t, "ann"), f.withToken(ctx, t, "bob")
	s := f.session(ann, t)
	turn := f.create(ann, t, s, "talk")
	call := <-f.peers.blocked
	if _, err := f.CompactSession(bob, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.peers.release(call)
	if end := f.waitForEnd(ann, t, turn.Name); end.FinalText != "done" {
		t.Fatalf("the turn ended %v", end)
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	hooks := 0
	for call, has := range f.peers.given {
		want := "of ann"
		if strings.HasPrefix(call, "compact.") {
			hooks, want = hooks+1, "of bob"
		}
		if !maps.Equal(has, map[string]string{"TOKEN": want}) {
			t.Errorf("call %s has %v, not the token %s", call, has, want)
		}
	}
	if hooks != 1 || len(f.peers.given) != 4 {
		t.Errorf("%d hooks in %d calls", hooks, len(f.peers.given))
	}
}

// A turn that begins has its workspace made in the background: the hook of another user's
// compaction is not to come in between.
func TestAnothersHookHasNotTheVariablesOfTheTurnThatBegins(t *testing.T) {
	t.Parallel()
	f := start(t, talking+"fallback: {steps: [{text: [ok]}]}\n", withSpec(func(s *agent.Spec) { s.PreCompaction = "cat notes" }))
	ctx := deadline(t)
	ann, bob := f.withToken(ctx, t, "ann"), f.withToken(ctx, t, "bob")
	s := f.session(ann, t)
	first := f.create(ann, t, s, "talk")
	<-f.peers.blocked
	before, asked := make(chan struct{}), make(chan struct{}) // ann's second one is made; bob's is asked for
	f.peers.mu.Lock()
	var once, other sync.Once
	f.peers.ensuring = func(ctx context.Context) func() {
		if who, _ := principal.From(ctx); who.User == "bob" {
			other.Do(func() { close(asked) })
			return func() { <-before }
		}
		select {
		case <-asked: // it comes in between, if it may
		case <-time.After(200 * time.Millisecond):
		}
		return func() { once.Do(func() { close(before) }) }
	}
	f.peers.mu.Unlock()
	second := f.create(ann, t, s, "next")
	if _, err := f.CompactSession(bob, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	f.interrupt(ann, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ann, t, first.Name)
	f.waitForEnd(ann, t, second.Name)
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	for call, has := range f.peers.given {
		if strings.HasPrefix(call, "compact.") && has["TOKEN"] != "of bob" {
			t.Errorf("the hook has %v", has)
		}
	}
	if has := f.peers.environment["TOKEN"]; has != "of ann" {
		t.Errorf("in the end the turn's commands have the token %s", has)
	}
}

// Nothing of a user's runs in a rewind.
func TestARewindAsksForNoVariables(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	ann, bob := f.withToken(ctx, t, "ann"), f.withToken(ctx, t, "bob")
	s := f.session(ann, t)
	f.turn(ann, t, s, "build")
	f.rewind(bob, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: f.checkpoints(ann, t, s)[0].Name})
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if has := f.peers.environment["TOKEN"]; has != "of ann" {
		t.Errorf("the workspace has the token %s", has)
	}
	if last := f.peers.wanted[len(f.peers.wanted)-1]; !strings.HasPrefix(last.Call.CallId, "rewind.") || last.Warm {
		t.Errorf("asked for last: %v", last)
	}
}

func TestVariablesAreListedWithoutValuesAndByPages(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	users := sessionv1.NewUserServiceClient(f.conn)
	ctx := t.Context()
	for _, name := range []string{"C", "A", "B"} {
		set, err := users.SetUserVariable(ctx, &sessionv1.SetUserVariableRequest{Name: "users/default/variables/" + name, Value: "x"})
		if err != nil || set.Variable.Name != "users/default/variables/"+name || set.Variable.UpdateTime == nil {
			t.Fatalf("%v, %v", set, err)
		}
	}
	var names []string
	for token := ""; ; {
		resp, err := users.ListUserVariables(ctx, &sessionv1.ListUserVariablesRequest{Parent: "users/default", PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range resp.Variables {
			names = append(names, v.Name[len("users/default/variables/"):])
		}
		if token = resp.NextPageToken; token == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"A", "B", "C"}, names); d != "" {
		t.Error(d)
	}
}

func TestVariablesThatCannotBe(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	users := sessionv1.NewUserServiceClient(f.conn)
	for name, x := range map[string]struct {
		variable, value string
		want            codes.Code
	}{
		"another user's":     {"users/ann/variables/A", "x", codes.PermissionDenied},
		"a reserved name":    {"users/default/variables/LD_PRELOAD", "x", codes.InvalidArgument},
		"a proxy":            {"users/default/variables/https_proxy", "x", codes.InvalidArgument},
		"no name":            {"users/default/variables/1A", "x", codes.InvalidArgument},
		"a value with zeros": {"users/default/variables/A", "hidden\x00value", codes.InvalidArgument},
	} {
		_, err := users.SetUserVariable(t.Context(), &sessionv1.SetUserVariableRequest{Name: x.variable, Value: x.value})
		if apierr.Code(err) != x.want {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	_, err := users.DeleteUserVariable(t.Context(), &sessionv1.DeleteUserVariableRequest{Name: "users/default/variables/A"})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_VARIABLE_NOT_FOUND) {
		t.Error(err)
	}
	_, err = users.ListUserVariables(t.Context(), &sessionv1.ListUserVariablesRequest{Parent: "users/ann"})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER) {
		t.Error(err)
	}
}

// TestATurnWithoutCallsLeavesTheWorkspaceAlone counts what turns ask the sandbox for.
func TestATurnWithoutCallsLeavesTheWorkspaceAlone(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	s := f.session(t.Context(), t)
	for range 3 {
		f.turn(t.Context(), t, s, "hello")
	}
	if got := f.peers.lastWanted(); got != nil {
		t.Errorf("turns without calls asked for %v", got)
	}
	f.turn(t.Context(), t, s, "tools")
	if f.peers.lastWanted() == nil {
		t.Error("a turn with calls asked for no workspace")
	}
}
