package integration

import (
	"os"
	"path/filepath"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func (c *client) exportSnapshots(t *testing.T) *sandboxv1.ExportSnapshotsResponse {
	t.Helper()
	r, err := c.snapshots.ExportSnapshots(t.Context(), &sandboxv1.ExportSnapshotsRequest{Call: c.call()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAWorkspaceMovesToAnotherNodeWhenItsOwnIsLost(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		objects := t.TempDir()
		node := func() *client {
			cfg := configuration(t, level)
			cfg.ObjectStore.URL = "file://" + objects
			return start(t, cfg)
		}
		first, second := node(), node()
		first.ensure(t.Context(), t)
		first.bash(t, "mkdir -p d/empty && echo one > d/f && chmod 600 d/f && ln -s d/f link")
		kept := first.snapshot(t, first.call())
		if r := first.exportSnapshots(t); r.GetSnapshots() != 1 || r.GetSentBytes() == 0 {
			t.Errorf("exported %v", r)
		}
		if r := first.exportSnapshots(t); r.GetSnapshots() != 1 || r.GetSentBytes() != 0 {
			t.Errorf("exported again: %v", r)
		}
		first.bash(t, "echo lost > d/f")
		first.stop()

		request := &sandboxv1.ImportSnapshotsRequest{Call: in(2, second.named("move"))}
		for i, created := range []bool{true, false} {
			r, err := second.snapshots.ImportSnapshots(t.Context(), request)
			if err != nil || r.GetCreated() != created || r.GetSnapshot().GetId() != kept.GetId() {
				t.Fatalf("import %d: %v, %v", i, r, err)
			}
		}
		if got := second.bash(t, "cat link; stat -c %a d/f; ls d; echo two > d/f"); got.out != "one\n600\nempty\nf\n" || got.ExitCode != 0 {
			t.Errorf("there is %q %q", got.out, got.err)
		}
		second.restore(t, kept.GetId())
		if got := second.bash(t, "cat d/f"); got.out != "one\n" {
			t.Errorf("restored %q", got.out)
		}
		second.exportSnapshots(t) // by now the place of the first generation is of no use
		if left, _ := filepath.Glob(filepath.Join(objects, "default", "one", "*")); len(left) != 1 {
			t.Errorf("in the object store: %v", left)
		}
		if _, err := second.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: "sessions/one"}); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(objects); err != nil || len(left) > 0 {
			t.Errorf("after the deletion there is %v, %v", left, err)
		}
	})
}

// A command has made it larger than it may be. Where it is it can be used, to make room.
func TestAWorkspaceThatIsTooLargeArrives(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		objects := t.TempDir()
		node := func() *client {
			cfg := configuration(t, level)
			cfg.ObjectStore.URL, cfg.Limits.WorkspaceBytes = "file://"+objects, 2<<20
			return start(t, cfg)
		}
		first, second := node(), node()
		first.ensure(t.Context(), t)
		first.bash(t, "head -c 3145728 /dev/urandom > f")
		first.snapshot(t, first.call())
		first.exportSnapshots(t)
		if _, err := second.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(2, second.named("move"))}); err != nil {
			t.Fatal(err)
		}
		if r := second.bash(t, "stat -c %s f && rm f && head -c 1048576 /dev/urandom > g"); r.out != "3145728\n" || r.ExitCode != 0 {
			t.Errorf("there is %q %q", r.out, r.err)
		}
	})
}

func TestANodeThatWasReplacedHarmsNothing(t *testing.T) {
	t.Parallel()
	objects := t.TempDir()
	node := func() *client {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.ObjectStore.URL = "file://" + objects
		return start(t, cfg)
	}
	stale, now, third := node(), node(), node()
	stale.ensure(t.Context(), t)
	stale.bash(t, "echo one > f")
	stale.snapshot(t, stale.call())
	stale.exportSnapshots(t)
	if _, err := now.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(2, now.call())}); err != nil {
		t.Fatal(err)
	}
	now.bash(t, "echo two > f")
	now.snapshot(t, now.named("second"))
	now.exportSnapshots(t)
	stale.bash(t, "echo stale > f")
	stale.snapshot(t, stale.named("stale"))
	stale.exportSnapshots(t)
	if _, err := third.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(3, third.call())}); err != nil {
		t.Fatal(err)
	}
	if got := third.bash(t, "cat f"); got.out != "two\n" {
		t.Errorf("there is %q", got.out)
	}
}

// What was exported at the end of a turn may have been followed by snapshots of the next
// one when the copy was made.
func TestAWorkspaceIsMadeFromTheSnapshotThatIsAskedFor(t *testing.T) {
	t.Parallel()
	objects := t.TempDir()
	node := func() *client {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.ObjectStore.URL = "file://" + objects
		return start(t, cfg)
	}
	lost := node()
	lost.ensure(t.Context(), t)
	lost.bash(t, "echo one > f")
	one := lost.snapshot(t, lost.call()).GetId()
	lost.bash(t, "echo two > f")
	two := lost.snapshot(t, lost.call()).GetId()
	lost.exportSnapshots(t)
	for _, tt := range []struct{ name, ask, want, file string }{
		{"the one", one, one, "one\n"},
		{"the last when none is named", "", two, "two\n"},
		{"the last when it is not there any more", "gone", two, "two\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := node()
			r, err := c.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(2, c.call()), Snapshot: tt.ask})
			if err != nil || r.GetSnapshot().GetId() != tt.want {
				t.Fatalf("made from %v, %v", r.GetSnapshot().GetId(), err)
			}
			if got := c.bash(t, "cat f"); got.out != tt.file {
				t.Errorf("the file has %q", got.out)
			}
			if got := c.list(t.Context(), t); len(got) != 2 {
				t.Errorf("there are the snapshots %v", got)
			}
		})
	}
}

// A copy to a new place that breaks off has a part of the snapshots: those of the place before
// are all there still.
func TestAPlaceThatWasCopiedInPartIsNotMovedFrom(t *testing.T) {
	t.Parallel()
	objects := t.TempDir()
	node := func() *client {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.ObjectStore.URL = "file://" + objects
		return start(t, cfg)
	}
	first, second, third := node(), node(), node()
	first.ensure(t.Context(), t)
	first.bash(t, "echo one > f")
	one := first.snapshot(t, first.call()).GetId()
	first.exportSnapshots(t)
	if _, err := second.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(2, second.call())}); err != nil {
		t.Fatal(err)
	}
	second.bash(t, "echo two > f")
	second.snapshot(t, second.named("second"))
	places := filepath.Join(objects, "default", "one")
	names, err := filepath.Glob(filepath.Join(places, "000000000001", "snapshots", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("in the first place: %v, %v", names, err)
	}
	inTheWay := filepath.Join(places, "000000000002", "snapshots", filepath.Base(names[0]))
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := second.snapshots.ExportSnapshots(t.Context(), &sandboxv1.ExportSnapshotsRequest{Call: second.call()}); err == nil {
		t.Fatal("the copy did not break off")
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	r, err := third.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(3, third.call()), Snapshot: one})
	if err != nil || r.GetSnapshot().GetId() != one {
		t.Errorf("made from %v, not %v: %v", r.GetSnapshot().GetId(), one, err)
	}
}

func TestWithoutAnObjectStoreNothingMoves(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	_, err := c.snapshots.ExportSnapshots(t.Context(), &sandboxv1.ExportSnapshotsRequest{Call: c.call()})
	wantReason(t, err, "NO_OBJECT_STORE")
	_, err = c.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(1, c.call())})
	wantReason(t, err, "NO_OBJECT_STORE")
	objects := t.TempDir()
	full := open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) { cfg.ObjectStore.URL = "file://" + objects + "/o" })
	full.session = "sessions/never"
	_, err = full.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(1, full.call())})
	wantReason(t, err, "SNAPSHOT_NOT_FOUND")
	_, err = full.files.ListFiles(t.Context(), &sandboxv1.ListFilesRequest{Session: full.session})
	wantReason(t, err, "WORKSPACE_NOT_FOUND")
	bad := open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) {
		cfg.ObjectStore.URL = "s3://bucket?endpoint=http://127.0.0.1:1"
		cfg.ObjectStore.AccessKey, cfg.ObjectStore.SecretKey = "k", "s"
	})
	bad.snapshot(t, bad.call())
	_, err = bad.snapshots.ExportSnapshots(t.Context(), &sandboxv1.ExportSnapshotsRequest{Call: bad.call()})
	wantReason(t, err, "OBJECT_STORE_FAILED")
}

// A workspace that could not be brought here has no snapshot yet: what there is of it in the
// object store is all that is left of its files.
func TestAnExportOfNothingLeavesWhatWasExportedBefore(t *testing.T) {
	t.Parallel()
	objects := t.TempDir()
	node := func() *client {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.ObjectStore.URL = "file://" + objects
		return start(t, cfg)
	}
	lost, empty, third := node(), node(), node()
	lost.ensure(t.Context(), t)
	lost.bash(t, "echo one > f")
	lost.snapshot(t, lost.call())
	lost.exportSnapshots(t)
	if _, err := empty.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: in(2, empty.call())}); err != nil {
		t.Fatal(err)
	}
	if r := empty.exportSnapshots(t); r.GetSnapshots() != 0 {
		t.Errorf("exported %v", r)
	}
	if _, err := third.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(3, third.call())}); err != nil {
		t.Fatal(err)
	}
	if got := third.bash(t, "cat f"); got.out != "one\n" {
		t.Errorf("there is %q", got.out)
	}
}
