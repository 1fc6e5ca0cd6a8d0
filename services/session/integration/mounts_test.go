package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func withMounts(c *session.Config) {
	c.Agents["tester"] = agent.Spec{Profile: "full", Tools: []string{"Read"}, Mounts: []agent.Mount{{Name: "tools"}, {Name: "books"}}}
}

// named requests mounts as the operator shows them.
func named(names ...string) []*commonv1.Mount {
	var all []*commonv1.Mount
	for _, name := range names {
		all = append(all, &commonv1.Mount{Name: name})
	}
	return all
}

// equal reports whether requests are for mounts of these names.
func equal(all []*commonv1.Mount, names ...string) bool {
	return cmp.Equal(named(names...), all, protocmp.Transform())
}

// mounting makes a session that asks for mounts of its own.
func (f *fixture) mounting(ctx context.Context, t *testing.T, names ...string) string {
	t.Helper()
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Mounts: named(names...)}})
	if err != nil {
		t.Fatal(err)
	}
	if !equal(resp.Session.Mounts, names...) {
		t.Errorf("the session has the mounts %v, want %v", resp.Session.Mounts, names)
	}
	return resp.Session.Name
}

// wantMounts checks what each request for the session's workspace asked for.
func (f *fixture) wantMounts(t *testing.T, session string, want ...string) {
	t.Helper()
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	asked := slices.DeleteFunc(slices.Clone(f.peers.wanted), func(r *sandboxv1.EnsureWorkspaceRequest) bool { return r.GetCall().GetSession() != session })
	if len(asked) == 0 {
		t.Fatalf("the workspace of %s was not requested", session)
	}
	for _, r := range asked {
		if r.Mounts == nil {
			t.Errorf("%s leaves the mounts as they are", r.GetCall().GetCallId())
		}
		if d := cmp.Diff(named(want...), r.GetMounts().GetMounts(), protocmp.Transform()); d != "" {
			t.Errorf("%s asks for (-want +got) %s", r.GetCall().GetCallId(), d)
		}
	}
}

func TestWhoeverMakesAWorkspaceAsksForTheMountsOfTheAgentAndTheSession(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withMounts)
	ctx := t.Context()
	s := f.mounting(ctx, t, "drafts", "books")
	f.turn(ctx, t, s, "one")
	api := sessionv1.NewRepositoryServiceClient(f.conn)
	if _, err := api.AddRepository(ctx, &sessionv1.AddRepositoryRequest{Parent: s, Url: "https://git.example.com/org/app"}); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.turn(ctx, t, s, "two")
	f.wantMounts(t, s, "books", "drafts", "tools")
	plain := f.mounting(ctx, t)
	f.turn(ctx, t, plain, "one")
	f.wantMounts(t, plain, "books", "tools")
	shown, err := f.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: "agents/tester"})
	if err != nil || !equal(shown.GetAgent().GetMounts(), "tools", "books") {
		t.Errorf("the agent shows %v, %v", shown.GetAgent().GetMounts(), err)
	}
}

func TestASessionWithoutMountsTakesThemAway(t *testing.T) {
	t.Parallel()
	f := start(t, reading)
	s := f.session(t.Context(), t)
	f.turn(t.Context(), t, s, "one")
	f.wantMounts(t, s)
}

func TestWhatIsMadeOfASessionAsksForItsMounts(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withMounts)
	ctx := t.Context()
	s := f.mounting(ctx, t, "drafts")
	f.turn(ctx, t, s, "one")
	fork, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := f.upload(ctx, &sessionv1.ImportOpen{}, f.export(ctx, t, s, jsonl))
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []*sessionv1.Session{fork.Session, imported} {
		if !equal(made.Mounts, "drafts") {
			t.Errorf("%s has the mounts %v", made.Name, made.Mounts)
		}
		f.turn(ctx, t, made.Name, "two")
		f.wantMounts(t, made.Name, "books", "drafts", "tools")
	}
}

func TestATurnSaysWhichMountItMayNotHave(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withMounts)
	f.peers.unknown = "secrets"
	s := f.mounting(t.Context(), t, "secrets")
	end := finished(t, f.turn(t.Context(), t, s, "one"))
	if end.State != sessionv1.TurnState_TURN_STATE_FAILED || !strings.Contains(end.GetError().GetMessage(), "there is no such mount: secrets. The sandbox's operator does not allow") {
		t.Errorf("the turn ended %v", end)
	}
}

// An optional mount that is missing is a warning, once.
func TestASessionGoesOnWithoutAnOptionalMount(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withMounts)
	ctx := t.Context()
	f.peers.unknown = "secrets"
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Mounts: []*commonv1.Mount{{Name: "secrets", Optional: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"one", "two"} {
		warnings := 0
		events := f.turn(ctx, t, resp.Session.Name, text)
		if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
			t.Errorf("turn %s ended %v", text, end)
		}
		for _, e := range events {
			if w := e.GetWarning(); w.GetReason() == "MOUNT_MISSING" && strings.Contains(w.GetMessage(), "The mount secrets does not exist") {
				warnings++
			}
		}
		if warnings > 1 || i == 0 && warnings == 0 { // a replica that takes the session anew warns again
			t.Errorf("turn %s: there are %d warnings", text, warnings)
		}
	}
}

// A checkpoint between turns makes the workspace, and leaves the warning to the next turn.
func TestACheckpointBetweenTurnsGoesOnWithoutAnOptionalMount(t *testing.T) {
	t.Parallel()
	f := start(t, reading, withMounts)
	ctx := t.Context()
	f.peers.unknown = "secrets"
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Mounts: []*commonv1.Mount{{Name: "secrets", Optional: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: resp.Session.Name}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(f.turn(ctx, t, resp.Session.Name, "one"), func(e *sessionv1.Event) bool { return e.GetWarning().GetReason() == "MOUNT_MISSING" }) {
		t.Error("the turn has no warning")
	}
}

func TestRequestsThatNoMountCanAnswerAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	many := make([]string, 33)
	for i := range many {
		many[i] = "m" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	for name, x := range map[string]struct {
		field  string
		mounts []*commonv1.Mount
	}{
		"one with a slash": {"session.mounts[0].name", named("../books")}, "an empty one": {"session.mounts[0].name", named("")}, "one in capitals": {"session.mounts[0].name", named("Books")},
		"one twice": {"session.mounts", named("books", "books")}, "more than there may be": {"session.mounts", named(many...)},
		"a path upwards": {"session.mounts[0].path", []*commonv1.Mount{{Name: "books", Path: "a/../.."}}}, "an alias elsewhere": {"session.mounts[0].alias", []*commonv1.Mount{{Name: "books", Alias: "uploads"}}},
		"one alias for two": {"session.mounts", []*commonv1.Mount{{Name: "a", Alias: "mnt/x"}, {Name: "b", Alias: "mnt/x"}}}, "another mode": {"session.mounts[0].mode", []*commonv1.Mount{{Name: "a", Mode: "rwx"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Mounts: x.mounts}})
			if apierr.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), x.field+":") {
				t.Errorf("got %v, want a fault of %s", err, x.field)
			}
		})
	}
	if s := f.mounting(t.Context(), t, many[:32]...); s == "" {
		t.Error("as many as there may be are refused")
	}
}
