package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestCallsWaitForTheWorkspace(t *testing.T) {
	repository := agent.Repository{URL: "https://example.com/a.git"}
	withRepository := spec
	withRepository.Repositories = []agent.Repository{repository}
	refused := status.Error(codes.InvalidArgument, "no")
	for name, c := range map[string]struct {
		spec    agent.Spec
		errs    map[string][]error
		fails   string
		notes   string
		methods []string
	}{
		"it is made":              {spec, nil, "", "", []string{"ensure"}},
		"without tools":           {agent.Spec{}, nil, "", "", nil},
		"refused":                 {spec, map[string][]error{"ensure": {refused}}, "does not allow", "", []string{"ensure"}},
		"with a repository":       {withRepository, nil, "", "", []string{"ensure", "clone"}},
		"the clone fails":         {withRepository, map[string][]error{"clone": {refused}}, "", "could not be cloned", []string{"ensure", "clone"}},
		"cloned before":           {withRepository, map[string][]error{"clone": {remote.ErrRepositoryExists}, "branch": {remote.ErrBranchExists}}, "", "", []string{"ensure", "clone", "branch"}},
		"the branch is refused":   {withRepository, map[string][]error{"clone": {remote.ErrRepositoryExists}, "branch": {refused}}, "", "could not be made", []string{"ensure", "clone", "branch"}},
		"something else is there": {withRepository, map[string][]error{"clone": {remote.ErrRepositoryExists}, "branch": {remote.ErrNoRepository}}, "", "could not be cloned", []string{"ensure", "clone", "branch"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, c.spec, Config{Branch: "fairlead/{session}"})
			f.sandbox.errs = c.errs
			f.Prepare(f.Scope)
			defer f.Release()
			notes, out, err := f.Await(f.Scope)
			if err != nil || out.GoesOn() != (c.fails == "") || c.fails != "" && !strings.Contains(out.End.Error.Message, c.fails) {
				t.Fatalf("the outcome is %+v (%v)", out.End, err)
			}
			if !slices.Equal(f.sandbox.methods(), c.methods) || !strings.Contains(notes, c.notes) || (notes == "") != (c.notes == "") || (len(f.Warnings()) > 0) != (c.notes != "") {
				t.Errorf("requested %v, noted %q", f.sandbox.methods(), notes)
			}
			if again, _, _ := f.Await(f.Scope); again != "" {
				t.Errorf("noted again: %q", again)
			}
		})
	}
}

func TestTheEndOfATurnBreaksOffThePreparation(t *testing.T) {
	f := start(t, spec, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sc := f.InTurn(ctx)
	f.Prepare(sc)
	defer f.Release()
	if _, out, err := f.Await(sc); err != nil || !out.Stopped {
		t.Errorf("the outcome is %+v (%v)", out, err)
	}
}

// onNodes starts a session whose workspace was made on node a of two.
func onNodes(t *testing.T) *fixture {
	t.Helper()
	f := start(t, spec, Config{Export: true, Nodes: placement.New(placement.Config{Names: []string{"a", "b"}})})
	f.SetPlace(store.Place{Node: "a", Generation: 2, Made: true, Export: store.Export{Turn: "t0", Seq: 3, Snapshot: "x"}})
	return f
}

func TestAWorkspaceThatItsNodeHasLostIsRestored(t *testing.T) {
	f := onNodes(t)
	f.sandbox.errs["ensure"] = []error{remote.ErrNoWorkspace}
	f.Prepare(f.Scope)
	if _, out, err := f.Await(f.Scope); err != nil || !out.Stopped || !f.sandbox.ensured.MustExist {
		t.Fatalf("the outcome is %+v (%v)", out, err)
	}
	f.Release()
	f.Store.Place = store.Place{Generation: 3, Export: f.Session.Place().Export} // what jobs have recorded meanwhile
	moved, out, err := f.Place.Ensure(f.Scope)
	if err != nil || !moved || !out.GoesOn() {
		t.Fatal(moved, out, err)
	}
	p := f.Session.Place()
	if p.Node != "a" || p.Generation != 3 || p.Restore || !p.Made {
		t.Errorf("the place is %+v", p)
	}
	last := f.Path[len(f.Path)-1]
	if last.Role != sessionv1.Role_ROLE_USER || !strings.Contains(last.Blocks[0].GetContent().GetText().Text, "restored from its last copy") {
		t.Errorf("the model reads %v", last)
	}
	if moved, out, err := f.Place.Ensure(f.Scope); err != nil || moved || !out.GoesOn() {
		t.Error("it has moved again")
	}
}

func TestAWorkspaceIsRecordedAsMadeOnce(t *testing.T) {
	f := onNodes(t)
	p := f.Session.Place()
	p.Made = false
	f.SetPlace(p)
	for range 2 {
		if err := f.Make(f.Scope, f.CallRef("c")); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	for _, w := range f.Writes() {
		if w.Made == 2 {
			made++
		}
	}
	if made != 1 || !f.Session.Place().Made {
		t.Errorf("it is recorded %d times", made)
	}
}

func TestALeavingWorkspaceIsCopiedSealedAndCopiedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		errs    map[string][]error
		fails   bool
		methods []string
	}{
		"it leaves":        {nil, false, []string{"snapshot", "export", "seal", "snapshot", "delete", "export"}},
		"an older node":    {map[string][]error{"seal": {status.Error(codes.Unimplemented, "no")}}, false, []string{"snapshot", "export", "seal", "snapshot", "delete", "export"}},
		"no room":          {map[string][]error{"snapshot": {nil, remote.ErrTooManySnapshots}}, false, []string{"snapshot", "export", "seal", "snapshot", "delete", "snapshot", "export"}},
		"the seal fails":   {map[string][]error{"seal": {errors.New("no")}}, true, []string{"snapshot", "export", "seal", "unseal", "delete"}},
		"no object store":  {map[string][]error{"export": {remote.ErrNoObjectStore}}, true, []string{"snapshot", "export", "delete"}},
		"the unseal waits": {map[string][]error{"seal": {errors.New("no")}, "unseal": {errors.New("no")}}, true, []string{"snapshot", "export", "seal", "unseal", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := onNodes(t)
			if c.errs != nil {
				f.sandbox.errs = c.errs
			}
			err := f.Place.copies.exportAndSeal(f.Scope, f.Session.Place())
			if (err != nil) != c.fails || !slices.Equal(f.sandbox.methods(), c.methods) {
				t.Fatalf("requested %v (%v)", f.sandbox.methods(), err)
			}
			if !c.fails {
				return
			}
			if err := f.Place.copies.unsealAgain(f.Scope); err != nil || f.Place.copies.sealed != 0 {
				t.Errorf("it stays sealed: %v", err)
			}
		})
	}
}

func TestAnUndoneTurnVoidsTheExport(t *testing.T) {
	f := onNodes(t)
	f.Call(&sessionv1.ToolUse{Tool: "Bash"})
	if !f.Place.Changed(f.Scope, f.Active) {
		t.Error("the turn has changed nothing")
	}
	var write store.Write
	f.Place.ExportAfter(f.Scope, &write, f.Active)
	f.Place.ExportRewound(f.Scope, &write, "t1.undone")
	if len(write.Jobs) != 2 || write.VoidExports != f.Log.Seq() || !f.Session.Place().Export.Void() {
		t.Errorf("written is %+v, and the place is %+v", write, f.Session.Place())
	}
}

func TestATakeoverIsAnnounced(t *testing.T) {
	for name, c := range map[string]struct {
		tools error
		stale bool
	}{
		"known":               {nil, false},
		"the holder is stale": {remote.ErrStaleEpoch, true},
		"an older tools":      {status.Error(codes.Unimplemented, "no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := onNodes(t)
				f.Lease.FenceDue = true
				ctx, stop := f.Fence(t.Context(), f.Session, func(_ context.Context, call *commonv1.CallRef) error {
					if call.WorkspaceGeneration != 0 {
						t.Error("the fence names a place")
					}
					return remote.Error(c.tools)
				})
				defer stop()
				if stale := errors.Is(context.Cause(ctx), store.ErrStaleEpoch); stale != c.stale {
					t.Errorf("the context has ended: %v", context.Cause(ctx))
				}
			})
		})
	}
}

func TestASessionPushesAtTheEndOfItsTurns(t *testing.T) {
	f := start(t, spec, Config{Branch: "fairlead/{session}"})
	f.Spec.Repositories = []agent.Repository{{URL: "https://example.com/a.git", Push: agent.PushTurnEnd}}
	f.Active.Proto.Steps = 1
	if got := len(f.Repositories.Pushes(f.Scope, f.Active)); got != 1 {
		t.Errorf("there are %d pushes", got)
	}
	f.Active.Undo = true
	if len(f.Repositories.Pushes(f.Scope, f.Active)) != 0 {
		t.Error("an undone turn pushes")
	}
}

func TestAdviceDependsOnTheFailure(t *testing.T) {
	for code, want := range map[codes.Code]string{codes.InvalidArgument: "operator does not allow", codes.Unavailable: "sandbox service runs"} {
		if got := advice(remote.Error(status.Error(code, ""))); !strings.Contains(got, want) {
			t.Errorf("%v: %s", code, got)
		}
	}
}
