package integration

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestAnExitStatusIsNoSignal(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for _, tc := range []struct {
			script string
			reason sandboxv1.ExitReason
			code   int32
			signal int32
		}{
			{"exit 137", sandboxv1.ExitReason_EXIT_REASON_EXITED, 137, 0},
			{"exit 143", sandboxv1.ExitReason_EXIT_REASON_EXITED, 143, 0},
			{"kill -9 $$", sandboxv1.ExitReason_EXIT_REASON_SIGNALED, 0, 9},
			{"kill -15 $$", sandboxv1.ExitReason_EXIT_REASON_SIGNALED, 0, 15},
		} {
			r := c.bash(t, tc.script)
			if r.GetReason() != tc.reason || r.GetExitCode() != tc.code || r.GetSignal() != tc.signal {
				t.Errorf("%s: %v", tc.script, r.ExecExited)
			}
		}
	})
}

// TestANodeHasOnlySoManySandboxes has a command in every one that there may be.
func TestANodeHasOnlySoManySandboxes(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(c *sandbox.Config) { c.MaxSandboxes = 1 })
		ref := c.call()
		c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: ref, Argv: []string{"sleep", "600"}})
		other := *c
		other.session = "sessions/two"
		other.ensure(t.Context(), t)
		_, err := other.exec(t.Context(), "echo no", nil)
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%v", err)
		}
		wantReason(t, err, "TOO_MANY_SANDBOXES")
		if _, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: ref}); err != nil {
			t.Fatal(err)
		}
		if r := other.bash(t, "echo yes"); r.out != "yes\n" {
			t.Errorf("when the first one is idle: %v", r.ExecExited)
		}
		if r := c.bash(t, "echo back"); r.out != "back\n" {
			t.Errorf("the first one again: %v", r.ExecExited)
		}
	})
}

// TestAWorkspacesOwnOldSandboxMakesRoomForItsNext has commands, or an idle sandbox of another
// session, in all the others that there may be.
func TestAWorkspacesOwnOldSandboxMakesRoomForItsNext(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		for _, others := range []string{"exec sleep 600 > /dev/null", "true"} {
			c := open(t, level, func(c *sandbox.Config) { c.MaxSandboxes, c.SpareSandboxes = 2, 0 })
			c.bash(t, "true")
			other := *c
			other.session = "sessions/two"
			other.ensure(t.Context(), t)
			stream := other.launch(t.Context(), t, &sandboxv1.ExecStart{
				Call: other.call(), Argv: []string{"bash", "-c", "touch /tmp/kept; echo ready; " + others},
			})
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			if others == "true" {
				if _, err := follow(stream); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 5 {
				want := &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Limits: &sandboxv1.WorkspaceLimits{OpenFiles: int32(64 + i)}}
				if _, err := c.workspaces.EnsureWorkspace(t.Context(), want); err != nil {
					t.Fatal(err)
				}
				if _, err := c.exec(t.Context(), "true", nil); err != nil {
					t.Fatalf("beside %q: %v", others, err)
				}
			}
			if others != "true" {
				continue
			}
			if r := other.bash(t, "ls /tmp"); r.out != "kept\n" {
				t.Errorf("the other session's sandbox had to go: %q", r.out)
			}
		}
	})
}

// TestAnIdleSandboxComesBackUnseen waits until it has ended.
func TestAnIdleSandboxComesBackUnseen(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, func(c *sandbox.Config) { c.IdleTimeout = time.Second })
	r := c.bash(t, "echo x > file; readlink /proc/self/ns/pid")
	deadline, look := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for inNamespace(r.out) {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("it does not end")
		}
	}
	// The kernel may give the next namespace the number of the one that is gone: it says nothing of whether it is another.
	if again := c.bash(t, "cat file"); again.out != "x\n" {
		t.Errorf("%q: %v", again.out, again.ExecExited)
	}
}

// inNamespace reports whether a process is in a process namespace.
func inNamespace(name string) bool {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, p := range processes {
		if link, err := os.Readlink("/proc/" + p.Name() + "/ns/pid"); err == nil && link+"\n" == name {
			return true
		}
	}
	return false
}

// TestInitNeedsNoThreadLater makes init busy, and looks whether it has made threads: it could
// not where a command has used up the processes of its sandbox, and would end with all in it.
func TestInitNeedsNoThreadLater(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		threads := func() string { return c.bash(t, "grep Threads /proc/1/status").out }
		before := threads()
		if !strings.Contains(before, "Threads") {
			t.Fatalf("init has %q", before)
		}
		var all errgroup.Group
		for range 8 {
			all.Go(func() error {
				for range 10 { // and there is garbage to collect, too
					if _, err := c.exec(t.Context(), "for i in 1 2 3 4 5 6; do (kill -CONT 1; kill -STOP $BASHPID) & done; kill -CONT $(jobs -p); kill -9 $(jobs -p); wait", large); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		if after := threads(); after != before {
			t.Errorf("before: %s; after: %s", before, after)
		}
	})
}

// TestInitKeepsNothingOfItsCommands gives init much to forget. It is alone, for it keeps the processors busy.
func TestInitKeepsNothingOfItsCommands(t *testing.T) {
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for range 300 { // 30 MB, which init copies
			if r, err := c.exec(t.Context(), "true", large); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		c.keptLittle(t)
	})
}

// keptLittle reports whether init ever took much memory.
func (c *client) keptLittle(t *testing.T) {
	t.Helper()
	const most = 16 << 10 // KiB
	peak := strings.TrimSpace(c.bash(t, "grep VmHWM /proc/1/status | grep -o '[0-9]*'").out)
	if kib, err := strconv.Atoi(peak); err != nil || kib > most {
		t.Errorf("init took %s KiB, %v", peak, err)
	}
}

// large makes a command that is long to tell.
func large(s *sandboxv1.ExecStart) { s.Env = map[string]string{"LARGE": strings.Repeat("x", 100<<10)} }

// TestInitForgetsWhereThereIsNoRoom has a command take all processes that the sandbox may
// have, while init has much to forget: it has the threads for that already. It is alone, too.
func TestInitForgetsWhereThereIsNoRoom(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("without control groups a command has a sandbox of its own beside another")
	}
	c := open(t, sandbox.LevelFull, func(c *sandbox.Config) { c.Limits.Processes = 40 })
	namespace := c.bash(t, "readlink /proc/self/ns/pid").out
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{
		Call: c.call(), Stdin: true,
		Argv: []string{"bash", "-c", "for i in 1 2 3 4; do (while :; do :; done) & done; while true; do sleep 1000 & done & read"},
	})
	for said := ""; !strings.Contains(said, "fork"); { // bash, which tries again and again
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		said += string(m.GetStderr().GetData())
	}
	refused := 0
	patience := time.Now().Add(20 * time.Second) // bash gives up after 31 seconds without a process
	for i := 0; i < 200 && time.Now().Before(patience); i++ {
		r, err := c.exec(t.Context(), "true", large)
		if err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
			refused++
		}
	}
	if refused == 0 {
		t.Error("there was room for everything")
	}
	send(t, stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Close: true}}})
	if r, err := follow(stream); err != nil || r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
		t.Errorf("%v, %v", r.ExecExited, err)
	}
	if r := c.bash(t, "readlink /proc/self/ns/pid"); r.out != namespace {
		t.Errorf("init ended: %q, not %q", r.out, namespace)
	}
	c.keptLittle(t)
}
