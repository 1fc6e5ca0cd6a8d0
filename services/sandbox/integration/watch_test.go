package integration

import (
	"context"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
)

// watch begins to watch the workspace.
func (c *client) watch(t *testing.T) sandboxv1.FileService_WatchFilesClient { return c.watchIn(t, "") }

// watchIn begins to watch a folder.
func (c *client) watchIn(t *testing.T, name string) sandboxv1.FileService_WatchFilesClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stream, err := c.files.WatchFiles(ctx, &sandboxv1.WatchFilesRequest{Session: c.session, Path: name})
	if err != nil {
		t.Fatal(err)
	}
	if begun, err := stream.Recv(); err != nil || len(begun.GetChanges()) != 0 {
		t.Fatalf("of %q: %v, %v", name, begun, err)
	}
	return stream
}

// A client that mirrors the files by the reported changes has the right files after a restore.
func TestAWatchTellsWhatARestoreBringsBack(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
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

func TestAWatchOfAMountTellsWhatChanges(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		c, dir := mounted(t, d)
		// The service's user need not be able to read the folder that holds a source.
		if err := os.Chmod(dir, 0o311); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		c.watchIn(t, "workflows") // which shows no folder of the host
		for name, source := range map[string]string{"mnt/books": dir + "/books", "shared": dir + "/shared"} {
			stream := c.watchIn(t, name)
			if err := os.WriteFile(source+"/new", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			wantChange(t, stream, sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_CREATED, name+"/new")
			if err := os.Remove(source + "/new"); err != nil {
				t.Fatal(err)
			}
			wantChange(t, stream, sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_DELETED, name+"/new")
		}
		stream := c.watchIn(t, "shared")
		c.bash(t, "mkdir shared/folder; echo 1 >shared/folder/file")
		wantChange(t, stream, sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_CREATED, "shared/folder/file")
	})
}

// wantChange waits until a watch tells of a change.
func wantChange(t *testing.T, stream sandboxv1.FileService_WatchFilesClient, kind sandboxv1.WatchedChangeKind, name string) {
	t.Helper()
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatalf("never told that %s is %v: %v", name, kind, err)
		}
		for _, change := range r.GetChanges() {
			if change.GetPath() == name && change.GetKind() == kind {
				return
			}
		}
	}
}

// A client that watches too much gets the cause, the limit and what to do.
func TestAWatchOfTooManyFoldersSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "mkdir -p many/{1..4100} few")
	for name, what := range map[string]string{"": "the workspace", "many": "many"} {
		stream, err := c.files.WatchFiles(t.Context(), &sandboxv1.WatchFilesRequest{Session: c.session, Path: name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		want := "there are too many directories to watch: " + what + " has more than 4096 with those below it, which is the most for one watch: watch a folder in it that has less, several with a watch each"
		if status.Code(err) != codes.ResourceExhausted || !apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_WATCHED) || apierr.Message(err) != want {
			t.Errorf("of %q: %v", name, err)
		}
	}
	stream := c.watchIn(t, "few")
	c.bash(t, "mkdir few/new")
	wantChange(t, stream, sandboxv1.WatchedChangeKind_WATCHED_CHANGE_KIND_CREATED, "few/new")
}
