package sandbox_test

import (
	"context"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// watch begins to watch the workspace.
func (c *client) watch(t *testing.T) sandboxv1.FileService_WatchFilesClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := c.files.WatchFiles(ctx, &sandboxv1.WatchFilesRequest{Session: c.session})
	if err != nil {
		t.Fatal(err)
	}
	if begun, err := stream.Recv(); err != nil || len(begun.GetChanges()) != 0 {
		t.Fatalf("%v, %v", begun, err)
	}
	return stream
}

// Whoever mirrors the files by what is told has after a restore what is there.
func TestAWatchTellsWhatARestoreBringsBack(t *testing.T) {
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "echo 1 > changed; mkdir folder; echo 1 > folder/changed; echo 1 > gone; echo 1 > kept")
	was := c.snapshot(t, c.call())
	c.bash(t, "echo 22 > changed; echo 22 > folder/changed; rm gone; echo 1 > new")
	mirror := map[string]bool{"changed": true, "folder/changed": true, "new": true, "kept": true}
	stream := c.watch(t)
	c.restore(t, was.GetId())
	c.bash(t, "echo > last")
	for !mirror["last"] {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range r.GetChanges() {
			mirror[change.GetPath()] = change.GetKind() != sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_DELETED
		}
	}
	for name, want := range map[string]bool{"changed": true, "folder/changed": true, "gone": true, "kept": true, "new": false} {
		if mirror[name] != want {
			t.Errorf("%s is there: %v, and was told to be: %v", name, want, mirror[name])
		}
	}
}

func TestAWatchEndsWithItsWorkspace(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		stream := c.watch(t)
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
			t.Fatal(err)
		}
		c.ensure(t.Context(), t)
		_, err := stream.Recv()
		wantReason(t, err, "WORKSPACE_NOT_FOUND")
	})
}
