package integration

import (
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// in makes a call for one generation of the workspace.
func in(generation int64, call *commonv1.CallRef) *commonv1.CallRef {
	call.WorkspaceGeneration = generation
	return call
}

// placed is a call by a holder who believes the workspace to be on a node, at a
// generation.
func (c *client) placed(node string, generation int64) *commonv1.CallRef {
	r := c.call()
	r.Node, r.WorkspaceGeneration = node, generation
	return r
}

func TestAWorkspaceThatMustExistIsNotMade(t *testing.T) {
	t.Parallel()
	c := start(t, configuration(t, sandbox.LevelBasic))
	ensure := func(r *commonv1.CallRef, must bool) (*sandboxv1.EnsureWorkspaceResponse, error) {
		return c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: r, MustExist: must})
	}
	for range 2 { // the first has left nothing behind that the second finds
		_, err := ensure(c.placed("here", 2), true)
		wantReason(t, err, "WORKSPACE_NOT_FOUND")
	}
	_, err := ensure(c.placed("elsewhere", 2), true)
	wantReason(t, err, "WRONG_NODE")
	if made, err := ensure(c.placed("here", 2), false); err != nil || !made.GetCreated() {
		t.Fatalf("it is made: %v, %v", made, err)
	}
	c.bash(t, "echo kept > f")
	if found, err := ensure(c.placed("here", 2), true); err != nil || found.GetCreated() {
		t.Fatalf("it is found: %v, %v", found, err)
	}
	_, err = ensure(c.placed("here", 3), true)
	wantReason(t, err, "WORKSPACE_NOT_FOUND")
	_, err = ensure(c.placed("here", 1), true)
	wantReason(t, err, "STALE_GENERATION")
	if text, err := c.read(t, "f"); err != nil || text != "kept\n" {
		t.Errorf("the copy of an older place has %q, %v", text, err)
	}
}

func TestAnotherGenerationIsRefusedWhereverAWorkspaceIsNamed(t *testing.T) {
	t.Parallel()
	c := start(t, configuration(t, sandbox.LevelBasic))
	ensure := func(r *commonv1.CallRef) error {
		_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: r})
		return err
	}
	if err := ensure(c.placed("here", 3)); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	calls := map[string]func(*commonv1.CallRef) error{
		"exec": func(r *commonv1.CallRef) error {
			_, err := c.exec(ctx, "true", func(s *sandboxv1.ExecStart) { s.Call = r })
			return err
		},
		"cancel": func(r *commonv1.CallRef) error {
			_, err := c.execs.CancelExec(ctx, &sandboxv1.CancelExecRequest{Call: r})
			return err
		},
		"acknowledge": func(r *commonv1.CallRef) error {
			_, err := c.execs.AcknowledgeExec(ctx, &sandboxv1.AcknowledgeExecRequest{Call: r})
			return err
		},
		"write": func(r *commonv1.CallRef) error {
			_, err := c.write(t, "f", "x", func(s *sandboxv1.WriteFileStart) { s.Call = r })
			return err
		},
		"delete file": func(r *commonv1.CallRef) error {
			_, err := c.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: r, Path: "f"})
			return err
		},
		"snapshot": func(r *commonv1.CallRef) error {
			_, err := c.snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{Call: r})
			return err
		},
	}
	for name, call := range calls {
		for _, generation := range []int64{2, 4} {
			t.Run(name, func(t *testing.T) { wantReason(t, call(c.placed("here", generation)), "STALE_GENERATION") })
		}
		t.Run(name+" on another node", func(t *testing.T) { wantReason(t, call(c.placed("there", 3)), "WRONG_NODE") })
	}
	wantReason(t, ensure(c.placed("here", 2)), "STALE_GENERATION")
	wantReason(t, ensure(c.placed("there", 3)), "WRONG_NODE")
	_, err := c.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: c.session, WorkspaceGeneration: 2})
	wantReason(t, err, "STALE_GENERATION")
	_, err = c.snapshots.ListSnapshots(ctx, &sandboxv1.ListSnapshotsRequest{Session: c.session, WorkspaceGeneration: 2})
	wantReason(t, err, "STALE_GENERATION")
	if err := ensure(c.placed("here", 3)); err != nil {
		t.Error(err)
	}
}

func TestACopyOfAnOlderPlaceMakesRoom(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		began := make(chan struct{})
		ended := make(chan sandboxv1.ExitReason, 1)
		go func() {
			s := &sandboxv1.ExecStart{Call: c.named("old"), Argv: []string{"bash", "-c", "echo stale > f; echo; exec sleep 60"}}
			stream, err := c.execs.Exec(t.Context())
			if err == nil {
				err = stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: s}})
			}
			for err == nil {
				var m *sandboxv1.ExecResponse
				if m, err = stream.Recv(); m.GetStdout() != nil {
					close(began)
				} else if m.GetExited() != nil {
					ended <- m.GetExited().GetReason()
					return
				}
			}
			t.Error(err)
			close(ended)
		}()
		<-began
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session, WorkspaceGeneration: 1}); err != nil {
			t.Fatal(err)
		}
		if r := <-ended; r != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
			t.Errorf("what ran in the old place ended as %v", r)
		}
		_, err := c.read(t, "f")
		wantReason(t, err, "WORKSPACE_NOT_FOUND")

		c.ensure(t.Context(), t) // of generation 1
		c.bash(t, "echo stale > f")
		back, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.placed("here", 4)})
		if err != nil || !back.GetCreated() || back.GetWorkspaceGeneration() != 4 {
			t.Fatalf("the workspace comes back as %v, %v", back, err)
		}
		if got := c.bash(t, "ls"); got.out != standardFolders {
			t.Errorf("it still has %q", got.out)
		}
		c.bash(t, "echo new > f")
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session, WorkspaceGeneration: 3}); err != nil {
			t.Fatal(err)
		}
		if got := c.bash(t, "cat f"); got.out != "new\n" {
			t.Errorf("after the deletion of older places there is %q", got.out)
		}
	})
}
