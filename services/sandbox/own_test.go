package sandbox_test

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
	for _, shut := range []string{"chmod -R 644 .", "chmod 000 /workspace", "chmod 000 ~", "chmod 000 ~ /workspace"} {
		t.Run(shut, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, level string) {
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
	eachLevel(t, func(t *testing.T, level string) {
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
