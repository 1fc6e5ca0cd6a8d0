package integration

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func (c *client) snapshot(t *testing.T, call *commonv1.CallRef) *sandboxv1.Snapshot {
	t.Helper()
	r, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: call, Description: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetSnapshot()
}

func (c *client) restore(t *testing.T, id string) *sandboxv1.RestoreSnapshotResponse {
	t.Helper()
	r, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: id})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASnapshotBringsBackWhatCommandsChanged(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		const look = `find . -mindepth 1 -exec stat -c '%n %A %s %Y %U %N' {} + | sort; cat a/f`
		c.bash(t, "mkdir -p a/empty b && echo one > a/f && chmod 640 a/f && ln -s a/f link && cp -a a c && chmod 700 c && chmod 2775 a && chmod 6751 a/f")
		before := c.bash(t, look).out
		one := c.snapshot(t, c.call())
		c.bash(t, "echo two >> a/f && rm -r c link && rmdir a/empty b && mkdir new && touch new/x && chmod 777 a && ln -s /etc b")
		if c.bash(t, look).out == before {
			t.Fatal("the test changes nothing")
		}
		c.restore(t, one.GetId())
		if diff := cmp.Diff(before, c.bash(t, look).out); diff != "" {
			t.Errorf("a command sees (-want +got):\n%s", diff)
		}
		if got := c.bash(t, "echo mine >> a/f && touch b/new c/new"); got.ExitCode != 0 {
			t.Errorf("what was restored is not the commands' own: %s", got.err)
		}
	})
}

func TestASnapshotIsMadeAndRestoredOncePerCall(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "echo one > f")
	once := c.named("once")
	first := c.snapshot(t, once)
	c.bash(t, "echo two > f")
	if diff := cmp.Diff(first, c.snapshot(t, once), protocmp.Transform()); diff != "" {
		t.Errorf("repeated (-first +second):\n%s", diff)
	}
	_, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: once, Description: "another"})
	wantReason(t, err, "CALL_ID_REUSED")
	request := &sandboxv1.RestoreSnapshotRequest{Call: c.named("back"), Snapshot: first.GetId()}
	for range 2 {
		if _, err := c.snapshots.RestoreSnapshot(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if got := c.bash(t, "cat f; echo three > f"); got.out != "one\n" && got.out != "three\n" {
			t.Errorf("f is %q", got.out)
		}
	}
	if got := c.bash(t, "cat f"); got.out != "three\n" {
		t.Errorf("a repeated restore was done again: f is %q", got.out)
	}
}

func TestSnapshotsAreListedInPagesAndDeleted(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) { cfg.Limits.Snapshots = 5 })
	var made []string
	for range 5 {
		c.bash(t, "head -c 100000 /dev/urandom > f")
		made = append(made, c.snapshot(t, c.call()).GetId())
	}
	_, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call()})
	wantReason(t, err, "TOO_MANY_SNAPSHOTS")
	if got, want := c.list(t.Context(), t), []string{made[4], made[3], made[2], made[1], made[0]}; !cmp.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	r, err := c.snapshots.DeleteSnapshots(t.Context(), &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), Snapshots: []string{made[4], "never"}, KeepLast: 3})
	if err != nil || r.GetDeleted() != 3 || r.GetFreedBytes() < 290_000 {
		t.Errorf("deleted %v, %v", r, err)
	}
	if got, want := c.list(t.Context(), t), []string{made[3], made[2]}; !cmp.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	_, err = c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: made[4]})
	wantReason(t, err, "SNAPSHOT_NOT_FOUND")
	if status.Code(err) != codes.NotFound {
		t.Errorf("code %v", status.Code(err))
	}
	c.restore(t, made[2])
}

func TestSnapshotsTakeNoMoreDiskThanTheyMay(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) { cfg.Limits.SnapshotBytes = 50_000 })
	c.bash(t, "head -c 100000 /dev/urandom > f")
	c.snapshot(t, c.call())
	_, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call()})
	wantReason(t, err, "TOO_MANY_SNAPSHOTS")
	c.bash(t, "rm f")
	if _, err := c.snapshots.DeleteSnapshots(t.Context(), &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), Snapshots: c.list(t.Context(), t)}); err != nil {
		t.Fatal(err)
	}
	c.snapshot(t, c.call())
}

func (c *client) list(ctx context.Context, t *testing.T) (ids []string) {
	t.Helper()
	for token := ""; ; {
		r, err := c.snapshots.ListSnapshots(ctx, &sandboxv1.ListSnapshotsRequest{Session: c.session, PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.GetSnapshots() {
			ids = append(ids, s.GetId())
		}
		if token = r.GetNextPageToken(); token == "" {
			return ids
		}
	}
}

func TestADiffIsToldInPages(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, "echo one > a && echo two > b")
	one := c.snapshot(t, c.call())
	c.bash(t, "echo changed > a && rm b && mkdir c && echo new > c/d")
	var got []*sandboxv1.FileChange
	for token := ""; ; {
		r, err := c.snapshots.DiffSnapshots(t.Context(), &sandboxv1.DiffSnapshotsRequest{
			Session: c.session, From: one.GetId(), Unified: true, PageSize: 1, PageToken: token,
		})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.GetChanges()...)
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	file := func(size int64) *sandboxv1.ChangedFile {
		return &sandboxv1.ChangedFile{Type: sandboxv1.FileType_FILE_TYPE_REGULAR, Mode: 0o644, Size: size}
	}
	want := []*sandboxv1.FileChange{
		{
			Path: "a", Status: sandboxv1.ChangeStatus_CHANGE_STATUS_MODIFIED, Before: file(4), After: file(8),
			Unified: "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+changed\n",
		},
		{
			Path: "b", Status: sandboxv1.ChangeStatus_CHANGE_STATUS_DELETED, Before: file(4),
			Unified: "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n",
		},
		{
			Path: "c", Status: sandboxv1.ChangeStatus_CHANGE_STATUS_ADDED,
			After: &sandboxv1.ChangedFile{Type: sandboxv1.FileType_FILE_TYPE_DIRECTORY, Mode: 0o755},
		},
		{
			Path: "c/d", Status: sandboxv1.ChangeStatus_CHANGE_STATUS_ADDED, After: file(4),
			Unified: "--- /dev/null\n+++ b/c/d\n@@ -0,0 +1 @@\n+new\n",
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAForkIsMadeOnceFromASnapshotAndGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		c.bash(t, "mkdir d && echo one > d/f && chmod 2755 d && chmod 6755 d/f")
		one := c.snapshot(t, c.call())
		c.bash(t, "echo two > d/f")
		c.session = "sessions/fork"
		request := &sandboxv1.ForkSnapshotRequest{Call: c.named("fork"), Source: "sessions/one", Snapshot: one.GetId()}
		for i, created := range []bool{true, false} {
			if r, err := c.snapshots.ForkSnapshot(t.Context(), request); err != nil || r.GetCreated() != created {
				t.Errorf("fork %d: %v, %v", i, r, err)
			}
		}
		_, err := c.snapshots.ForkSnapshot(t.Context(), &sandboxv1.ForkSnapshotRequest{Call: c.named("again"), Source: "sessions/one", Snapshot: one.GetId()})
		wantReason(t, err, "WORKSPACE_EXISTS")
		if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: "sessions/one"}); err != nil {
			t.Fatal(err)
		}
		if got := c.bash(t, "stat -c %a d d/f; cat d/f; echo three > d/f; rm -r d"); got.out != "2755\n6755\none\n" || got.ExitCode != 0 {
			t.Errorf("the fork has %q %q", got.out, got.err)
		}
		c.restore(t, one.GetId())
		if got := c.bash(t, "cat d/f"); got.out != "one\n" {
			t.Errorf("the fork's snapshot has %q", got.out)
		}
	})
}

func TestSnapshotsAreFenced(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	one := c.snapshot(t, c.call())
	c.epoch = 5
	c.snapshot(t, c.call())
	c.epoch = 4
	_, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: one.GetId()})
	wantReason(t, err, "STALE_EPOCH")
	c.epoch = 5
	_, err = c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: in(2, c.call())})
	wantReason(t, err, "STALE_GENERATION")
	_, err = c.snapshots.ListSnapshots(t.Context(), &sandboxv1.ListSnapshotsRequest{Session: "sessions/none"})
	wantReason(t, err, "WORKSPACE_NOT_FOUND")
}

func TestWhatRunsStandsStillWhileItsFilesAreKept(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("nothing can be stopped at level basic")
	}
	c := open(t, sandbox.LevelFull)
	stream, err := c.execs.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Both files change at every moment, one after the other.
	start := &sandboxv1.ExecStart{Call: c.named("writer"), Argv: []string{"bash", "-c", ": > a; : > b; echo; while :; do echo x >> a; echo x >> b; done"}}
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: start}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it has started, and it writes
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call()})
	if err != nil {
		t.Fatal(err)
	}
	if r.GetFrozen().AsDuration() <= 0 || len(r.GetSnapshot().GetLeftOut()) > 0 {
		t.Errorf("stopped for %v, left out %v", r.GetFrozen().AsDuration(), r.GetSnapshot().GetLeftOut())
	}
	if _, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: c.named("writer")}); err != nil {
		t.Fatal(err)
	}
	c.restore(t, r.GetSnapshot().GetId())
	if got := c.bash(t, "echo $(($(wc -l < a) - $(wc -l < b)))"); got.out != "0\n" && got.out != "1\n" {
		t.Errorf("the files are of two moments: %q %q", got.out, got.err)
	}
}

// The names of one file are files of their own in a snapshot, and so they are restored.
func TestARestoreTakesNoMoreThanAWorkspaceMay(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Limits.WorkspaceBytes = 4 << 20 })
		c.bash(t, "head -c 1048576 /dev/urandom > f; for i in {1..20}; do ln f l$i; done")
		one := c.snapshot(t, c.call())
		c.bash(t, "rm f l*; echo here > stays")
		_, err := c.snapshots.RestoreSnapshot(t.Context(), &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: one.GetId()})
		wantReason(t, err, "WORKSPACE_FULL")
		if r := c.bash(t, "cat stays; du -sk . | cut -f1"); !strings.HasPrefix(r.out, "here\n") || len(r.out) > len("here\n123\n") {
			t.Errorf("afterwards there is %q", r.out)
		}
	})
}

// What a snapshot leaves out may have names so long that all of them fit into no message.
func TestASnapshotIsToldOfWhateverNamesThereAre(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, `export -n PWD OLDPWD; n=$(printf 'n%.0s' {1..250}); n=$n/$n/$n/$n/$n/$n/$n/$n/$n/$n/$n/$n/$n/$n/$n
		for i in {1..60}; do mkdir -p $n && cd -P $n || exit; done; mkfifo {1..100}`)
	one := c.snapshot(t, c.call())
	if one.GetLeftOutCount() != 100 || len(one.GetLeftOut()) != 100 {
		t.Errorf("left out %d, told of %d", one.GetLeftOutCount(), len(one.GetLeftOut()))
	}
	if ids := c.list(t.Context(), t); len(ids) != 1 {
		t.Errorf("listed %v", ids)
	}
}

// A name that is no text does not take the reason from an error.
func TestAReasonIsToldWhateverNamesThereAre(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	c.bash(t, `mkdir -p $(for i in {1..1010}; do printf '\xff/'; done)`)
	_, err := c.snapshots.CreateSnapshot(t.Context(), &sandboxv1.CreateSnapshotRequest{Call: c.call()})
	wantReason(t, err, "WORKSPACE_FULL")
}
