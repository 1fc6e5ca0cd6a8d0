package integration

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func (c *client) seal(t *testing.T) error {
	t.Helper()
	_, err := c.workspaces.SealWorkspace(t.Context(), &sandboxv1.SealWorkspaceRequest{Call: c.call()})
	return err
}

func (c *client) unseal(t *testing.T) error {
	t.Helper()
	_, err := c.workspaces.UnsealWorkspace(t.Context(), &sandboxv1.UnsealWorkspaceRequest{Call: c.call()})
	return err
}

// changes are requests that change a workspace with a file f and a repository r.
func (c *client) changes(t *testing.T, snapshot string) []operation {
	ctx := t.Context()
	return []operation{
		{"a command", func() error {
			_, err := c.exec(ctx, "true", nil)
			return err
		}},
		{"making sure of the workspace", func() error {
			_, err := c.workspaces.EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Warm: true})
			return err
		}},
		{"writing", func() error {
			_, err := c.write(t, "g", "two\n", nil)
			return err
		}},
		{"editing", func() error {
			_, err := c.files.EditFile(ctx, &sandboxv1.EditFileRequest{Call: c.call(), Path: "f", Edits: []*sandboxv1.Edit{{OldText: "one", NewText: "two"}}})
			return err
		}},
		{"moving", func() error {
			_, err := c.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: c.call(), Path: "f", NewPath: "h"})
			return err
		}},
		{"deleting", func() error {
			_, err := c.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "f"})
			return err
		}},
		{"a restore", func() error {
			_, err := c.snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: snapshot})
			return err
		}},
		{"adding a repository", func() error {
			_, err := c.repos.AddRepository(ctx, &sandboxv1.AddRepositoryRequest{Call: c.call(), Directory: "another"})
			return err
		}},
		{"branching a repository", func() error {
			_, err := c.repos.CreateBranch(ctx, &sandboxv1.CreateBranchRequest{Call: c.call(), Directory: "r", Branch: "b"})
			return err
		}},
		{"removing a repository", func() error {
			_, err := c.repos.RemoveRepository(ctx, &sandboxv1.RemoveRepositoryRequest{Call: c.call(), Directory: "r"})
			return err
		}},
	}
}

func TestASealedWorkspaceStaysAsItIs(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		cfg := configuration(t, level)
		cfg.ObjectStore.URL = "file://" + t.TempDir()
		known := &sandboxv1.ExecStart{Argv: []string{"bash", "-c", "echo one > f; echo done"}}
		t.Run("first", func(t *testing.T) {
			c := start(t, cfg)
			c.ensure(t.Context(), t)
			known.Call = c.named("known")
			if r, err := follow(c.launch(t.Context(), t, known)); err != nil || r.ExitCode != 0 {
				t.Fatalf("%v, %v", r.ExecExited, err)
			}
			if _, err := c.repos.AddRepository(t.Context(), &sandboxv1.AddRepositoryRequest{Call: c.call(), Directory: "r"}); err != nil {
				t.Fatal(err)
			}
			one := c.snapshot(t, c.call())
			background := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"bash", "-c", "while echo x; do :; done >> grows & wait"}})
			for range 2 {
				if err := c.seal(t); err != nil {
					t.Fatal(err)
				}
			}
			if r, err := follow(background); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_CANCELLED {
				t.Errorf("what ran ended as %v, %v", r.ExecExited, err)
			}
			last := c.snapshot(t, c.call())
			for _, op := range c.changes(t, one.GetId()) {
				wantReason(t, op.do(), "WORKSPACE_SEALED")
			}
			if text, err := c.read(t, "f"); err != nil || text != "one\n" {
				t.Errorf("it reads %q, %v", text, err)
			}
			if r, err := follow(c.launch(t.Context(), t, known)); err != nil || r.out != "done\n" {
				t.Errorf("what was done before answers %q, %v", r.out, err)
			}
			if r := c.exportSnapshots(t); r.GetSnapshots() != 2 {
				t.Errorf("it exports %v", r)
			}
			if _, err := c.snapshots.DeleteSnapshots(t.Context(), &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), Snapshots: []string{one.GetId()}}); err != nil {
				t.Error(err)
			}
			r, err := c.snapshots.DiffSnapshots(t.Context(), &sandboxv1.DiffSnapshotsRequest{Session: c.session, From: last.GetId()})
			if err != nil || len(r.GetChanges()) > 0 {
				t.Errorf("since it was sealed it has changed: %v, %v", r, err)
			}
		})
		c := start(t, cfg) // the node was started again
		c.calls.Store(100)
		_, err := c.exec(t.Context(), "true", nil)
		wantReason(t, err, "WORKSPACE_SEALED")
		if err := c.unseal(t); err != nil {
			t.Fatal(err)
		}
		for _, op := range c.changes(t, c.snapshot(t, c.call()).GetId()) {
			if err := op.do(); err != nil && op.name != "deleting" { // it was moved before
				t.Errorf("%s: %v", op.name, err)
			}
		}
	})
}

// The holder that sealed a workspace is the only one that could have moved it.
func TestALaterHolderLiftsASeal(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	if err := c.seal(t); err != nil {
		t.Fatal(err)
	}
	c.epoch = 2
	if r, err := c.exec(t.Context(), "true", nil); err != nil || r.ExitCode != 0 {
		t.Errorf("%v, %v", r.ExecExited, err)
	}
	c.epoch = 1
	wantReason(t, c.seal(t), "STALE_EPOCH")
	wantReason(t, c.unseal(t), "STALE_EPOCH")
	c.epoch = 2
	c.bash(t, "true")
	for _, request := range []*sandboxv1.SealWorkspaceRequest{{Call: c.placed("here", 2)}, {Call: c.placed("there", 1)}, {Call: c.in("none").call()}} {
		_, err := c.workspaces.SealWorkspace(t.Context(), request)
		wantReason(t, err, map[string]string{"here": "STALE_GENERATION", "there": "WRONG_NODE", "": "WORKSPACE_NOT_FOUND"}[request.GetCall().GetNode()])
	}
	c.bash(t, "true")
}

// Whatever was answered before a seal, or beside it, is in the snapshot that follows.
func TestWhatWasAnsweredIsInTheSnapshotOfASealedWorkspace(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		const writers, before = 4, 10
		var done sync.Map
		var answered atomic.Int64
		enough := make(chan struct{})
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for n := 0; ; n++ {
					name := fmt.Sprintf("f%d.%d", i, n)
					var err error
					if i%2 == 0 {
						var r result
						if r, err = c.exec(t.Context(), "echo x > "+name, nil); err == nil && r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
							return // the seal has ended it
						}
					} else {
						_, err = c.write(t, name, "x\n", nil)
					}
					if err != nil {
						wantReason(t, err, "WORKSPACE_SEALED")
						return
					}
					done.Store(name, true)
					if answered.Add(1) == before {
						close(enough)
					}
				}
			})
		}
		<-enough
		if err := c.seal(t); err != nil {
			t.Fatal(err)
		}
		id := c.snapshot(t, c.call()).GetId()
		wg.Wait()
		r, err := c.snapshots.DiffSnapshots(t.Context(), &sandboxv1.DiffSnapshotsRequest{Session: c.session, From: id})
		if err != nil || len(r.GetChanges()) > 0 {
			t.Errorf("after the snapshot it has changed: %v, %v", r, err)
		}
		done.Range(func(name, _ any) bool {
			if text, err := c.read(t, name.(string)); err != nil || text != "x\n" {
				t.Errorf("%s, which was answered: %q, %v", name, text, err)
			}
			return true
		})
	})
}
