package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// race is a command that swaps a folder and a link to a folder of the host, while
// the service is asked for everything that it does with paths.
type race struct {
	*scene
	done atomic.Int64 // what went well
	not  atomic.Int64 // what was refused
}

// check counts an answer, which must not hold anything of the host. What a command does to
// its own files is no fault of the service's.
func (r *race) check(t *testing.T, what, brought string, err error) {
	t.Helper()
	if strings.Contains(brought, hostSecret) || strings.Contains(brought, "socket") {
		t.Errorf("%s brought %q", what, brought)
	}
	if err == nil {
		r.done.Add(1)
	} else {
		r.not.Add(1)
	}
	if status.Code(err) == codes.Internal {
		t.Errorf("%s failed inside", what)
	}
}

// TestRacesOfPaths runs each RPC that resolves paths against a command that changes
// what they lead to all the time.
func TestRacesOfPaths(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		r := &race{scene: newScene(t, d)}
		folder := filepath.Dir(r.host.secret)
		r.bash(t, "mkdir -p race/a && echo inside > race/a/secret && ln -s "+folder+" race/b && echo x > race/x")
		first := r.snapshot(t, r.call()).GetId()
		start := &sandboxv1.ExecStart{Call: r.call(), Argv: []string{"./attacker", "swap", "race/a", "race/b"}}
		stream := r.launch(t.Context(), t, start)
		if m, err := stream.Recv(); err != nil || m.GetStdout() == nil {
			t.Fatalf("%v %v", m, err)
		}
		r.play(t, first)
		send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Signal{Signal: &sandboxv1.ExecSignal{Signal: 15}}})
		swapped, err := follow(stream)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s swaps; %d answers, %d refused", strings.TrimSpace(swapped.out), r.done.Load(), r.not.Load())
		if r.done.Load() == 0 || r.not.Load() == 0 {
			t.Error("that was no race")
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 2 {
			t.Errorf("the host's folder holds %v, %v", entries, err)
		}
		r.unharmed(t)
	})
}

// play calls everything side by side for a while, which `make prove` makes longer.
func (r *race) play(t *testing.T, snapshot string) {
	while := 3 * time.Second
	if testing.Short() {
		while = time.Second
	}
	ctx, stop := context.WithTimeout(t.Context(), while)
	defer stop()
	var wg sync.WaitGroup
	for _, turn := range []func(context.Context, *testing.T){
		r.readAndWrite, r.moveAndDelete, r.search, r.watchFolder, r.exportAll,
		func(ctx context.Context, t *testing.T) { r.snapshotAndRestore(ctx, t, snapshot) },
	} {
		wg.Go(func() {
			for ctx.Err() == nil {
				turn(ctx, t)
			}
		})
	}
	wg.Wait()
}

func (r *race) readAndWrite(ctx context.Context, t *testing.T) {
	got, err := r.read(t, "race/a/secret") //nolint:contextcheck // the test's is above it
	r.check(t, "reading", got, err)
	st, err := r.files.StatFile(ctx, &sandboxv1.StatFileRequest{Session: r.session, Path: "race/a/socket"})
	if err == nil {
		t.Errorf("there is %v", st)
	}
	_, err = r.write(t, "race/a/secret", "written", nil) //nolint:contextcheck // as above
	r.check(t, "writing", "", err)
	_, err = r.write(t, "race/a/new/deeper", "written", nil) //nolint:contextcheck // as above
	r.check(t, "writing anew", "", err)
	e, err := r.files.EditFile(ctx, &sandboxv1.EditFileRequest{Call: r.call(), Path: "race/a/secret", Edits: []*sandboxv1.Edit{{OldText: "e", NewText: "e", ReplaceAll: true}}})
	r.check(t, "editing", e.GetSnippet(), err)
}

func (r *race) moveAndDelete(ctx context.Context, t *testing.T) {
	_, err := r.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: r.call(), Path: "race/x", NewPath: "race/a/moved"})
	r.check(t, "moving in", "", err)
	_, err = r.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: r.call(), Path: "race/a/moved", NewPath: "race/x"})
	r.check(t, "moving out", "", err)
	for _, path := range []string{"race/a/socket", "race/a/new", "race/a/secret"} {
		_, err = r.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: r.call(), Path: path, Recursive: true})
		r.check(t, "deleting", "", err)
	}
}

func (r *race) search(ctx context.Context, t *testing.T) {
	l, err := r.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: r.session, Path: "race/a"})
	r.check(t, "listing", found(l.GetFiles()), err)
	g, err := r.files.GlobFiles(ctx, &sandboxv1.GlobFilesRequest{Session: r.session, Pattern: "race/**"})
	r.check(t, "finding", found(g.GetFiles()), err)
	for _, path := range []string{"race", "race/a"} {
		stream, err := r.files.GrepFiles(ctx, &sandboxv1.GrepFilesRequest{Session: r.session, Pattern: "host's", Path: path})
		for err == nil {
			var m *sandboxv1.GrepFilesResponse
			m, err = stream.Recv()
			r.check(t, "searching", fmt.Sprint(m.GetMatches()), err)
		}
	}
}

func (r *race) watchFolder(ctx context.Context, t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	stream, err := r.files.WatchFiles(ctx, &sandboxv1.WatchFilesRequest{Session: r.session, Path: "race/a"})
	for err == nil {
		var m *sandboxv1.WatchFilesResponse
		m, err = stream.Recv()
		r.check(t, "watching", fmt.Sprint(m), err)
	}
}

func (r *race) exportAll(ctx context.Context, t *testing.T) {
	stream, err := r.workspaces.ExportWorkspace(ctx, &sandboxv1.ExportWorkspaceRequest{Session: r.session})
	var all bytes.Buffer
	for err == nil {
		var m *sandboxv1.ExportWorkspaceResponse
		m, err = stream.Recv()
		all.Write(m.GetData())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	// The names of the host's files are in the attacker's program as well, its secret
	// is not.
	r.check(t, "packing", strings.ReplaceAll(all.String(), "socket", ""), err)
}

func (r *race) snapshotAndRestore(ctx context.Context, t *testing.T, first string) {
	s, err := r.snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{Call: r.call()})
	r.check(t, "keeping", "", err)
	if err == nil {
		d, err := r.snapshots.DiffSnapshots(ctx, &sandboxv1.DiffSnapshotsRequest{Session: r.session, From: first, To: s.GetSnapshot().GetId(), Path: "race", Unified: true})
		r.check(t, "comparing", strings.ReplaceAll(fmt.Sprint(d), "socket", ""), err)
	}
	_, err = r.snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{Call: r.call(), Snapshot: first})
	r.check(t, "restoring", "", err)
}

// TestACommandAheadOfTheCountIsFoundAtItsEnd has a command move what it wrote to where it was counted already. A
// count may miss that while the command runs. The count at its end does not.
func TestACommandAheadOfTheCountIsFoundAtItsEnd(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(attacker(t))
	if err != nil {
		t.Fatal(err)
	}
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small, func(c *sandbox.Config) {
			c.Limits.WorkspaceInodes, c.Limits.Memory = 20_000, 2<<30
		})
		if _, err := c.write(t, "attacker", string(program), func(w *sandboxv1.WriteFileStart) { w.Mode = 0o755 }); err != nil {
			t.Fatal(err)
		}
		r := c.bash(t, "exec ./attacker hide 10")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT {
			t.Errorf("it ended %v %q %q", r.ExecExited, r.out, r.err)
		}
	})
}
