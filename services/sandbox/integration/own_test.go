package integration

import (
	"fmt"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// A command that closes the sandbox's own folders, as agents do by mistake, ends nothing: the
// next one, and whatever else is asked for, finds them open.
func TestTheSandboxesOwnFoldersAreOpenedAgain(t *testing.T) {
	t.Parallel()
	for _, shut := range []string{"chmod -R 644 .", "chmod 000 /workspace", "chmod 000 ~", "chmod 000 ~ /workspace"} {
		t.Run(shut, func(t *testing.T) {
			atLevel(t, func(t *testing.T, level string) {
				c := open(t, level, func(cfg *sandbox.Config) { cfg.Storage.Alias = "storage" })
				c.bash(t, "echo one > f")
				one := c.snapshot(t, c.call()).GetId()
				for _, op := range c.operations(t, one) {
					if r := c.bash(t, shut+"; true"); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
						t.Fatalf("before %s: %v", op.name, r.ExecExited)
					}
					if err := op.do(); err != nil {
						t.Errorf("%s: %v", op.name, err)
					}
				}
				c.restore(t, one)
				if r := c.bash(t, "cat f; stat -c %a f"); r.out != "one\n644\n" {
					t.Errorf("what was restored is %q, %v", r.out, r.ExecExited)
				}
			})
		})
	}
}

// operation is something that is asked of the service.
type operation struct {
	name string
	do   func() error
}

func (c *client) operations(t *testing.T, snapshot string) []operation {
	ctx := t.Context()
	return []operation{
		{"a command", func() error {
			if r := c.bash(t, `cd ~ && touch mine && cd /workspace && ls -d f && find ~ /workspace -maxdepth 0 ! -perm -700`); r.out != "f\n" {
				return fmt.Errorf("%v: %s%s", r.ExecExited, r.out, r.err)
			}
			return nil
		}},
		{"making sure of the workspace", func() error {
			_, err := c.workspaces.EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Warm: true})
			return err
		}},
		{"listing", func() error {
			_, err := c.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: c.session})
			return err
		}},
		{"writing", func() error {
			_, err := c.write(t, "g", "two\n", nil)
			return err
		}},
		{"a snapshot", func() error {
			_, err := c.snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{Call: c.call()})
			return err
		}},
		{"a difference", func() error {
			_, err := c.snapshots.DiffSnapshots(ctx, &sandboxv1.DiffSnapshotsRequest{Session: c.session, From: snapshot})
			return err
		}},
		{"an export", func() error {
			c.export(t)
			return nil
		}},
		{"a fork", func() error {
			_, err := c.snapshots.ForkSnapshot(ctx, &sandboxv1.ForkSnapshotRequest{Call: c.in("two").call(), Source: c.session, Snapshot: snapshot})
			return err
		}},
		{"a restore", func() error {
			_, err := c.snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{Call: c.call(), Snapshot: snapshot})
			return err
		}},
	}
}

// What a command has closed below is its own, and it is told how to open it.
func TestACommandIsToldHowToOpenItsFolder(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		c.bash(t, "mkdir -p a/b && chmod 0 a")
		in := func(s *sandboxv1.ExecStart) { s.Cwd = "a/b" }
		r, err := c.exec(t.Context(), "pwd", in)
		if err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_NOT_STARTED || !strings.Contains(r.GetMessage(), "chmod u+rwx") {
			t.Errorf("it is told %v, %v", r.ExecExited, err)
		}
		c.bash(t, "chmod u+rwx a")
		if r, err := c.exec(t.Context(), "pwd", in); err != nil || r.out != "/workspace/a/b\n" {
			t.Errorf("when it is open: %q, %v", r.out, err)
		}
	})
}

// The mode of a folder is its owner's, also of one that the service may look into only by
// changing it.
func TestLookingIntoAClosedFolderLeavesItsMode(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		const want = "0 d0\n311 d1\n77 d2\n400 d3\n600 d4\n"
		// It looks again for a while: just when the service looks, too, the modes are others.
		const look = "want='" + want + `'
			for ((end = SECONDS + 10; SECONDS < end; )); do
				got=$(stat -c '%a %n' d?)
				[[ $got = "${want%?}" ]] && break
				sleep 0.07
			done
			echo "$got"`
		made := c.bash(t, "umask 0; mkdir d0 d1 d2 d3 d4 && touch d0/f d4/f && chmod 0 d0/f d0 && chmod 311 d1 && chmod 77 d2 && chmod 400 d3 && chmod 600 d4; sleep 1; "+look)
		if made.out != want {
			t.Errorf("while they are counted: %q, %s", made.out, made.err)
		}
		one := c.snapshot(t, c.call()).GetId()
		if got := c.bash(t, look).out; got != want {
			t.Errorf("after a snapshot: %q", got)
		}
		c.bash(t, "chmod -R 755 d?; rmdir d1")
		c.restore(t, one)
		if got := c.bash(t, look).out; got != want {
			t.Errorf("after a restore: %q", got)
		}
		r, err := c.snapshots.DiffSnapshots(t.Context(), &sandboxv1.DiffSnapshotsRequest{Session: c.session, From: one})
		if err != nil || len(r.GetChanges()) > 0 {
			t.Errorf("the restored workspace differs: %v, %v", r, err)
		}
		two := c.in("two")
		if _, err := c.snapshots.ForkSnapshot(t.Context(), &sandboxv1.ForkSnapshotRequest{Call: two.call(), Source: c.session, Snapshot: one}); err != nil {
			t.Fatal(err)
		}
		if got := two.bash(t, "sleep 0.6; "+look).out; got != want {
			t.Errorf("in a fork: %q", got)
		}
		for _, c := range []*client{c, two} { // or the test could not remove them
			c.bash(t, "chmod -R u+rwx d?")
		}
	})
}

// What is in a folder that can be listed, but not searched, counts.
func TestAClosedFolderHidesNothingFromTheSize(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Limits.WorkspaceBytes = 1 << 20 })
		r := c.bash(t, "mkdir d && cd d && umask 0 && exec 3>f && chmod 600 . && head -c 3000000 /dev/zero >&3; sleep 20")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT {
			t.Errorf("it ended: %v", r.ExecExited)
		}
		c.bash(t, "chmod 700 d")
	})
}
