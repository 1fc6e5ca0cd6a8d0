package integration

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// crashDirectory has this test binary be a service that runs a command and waits
// to be killed.
const crashDirectory = "FAIRLEAD_TEST_CRASH_DIRECTORY"

// TestRunUntilKilled is the service that TestACrashLeavesNothingBehind kills.
func TestRunUntilKilled(t *testing.T) {
	dir := os.Getenv(crashDirectory)
	if dir == "" {
		t.Skip("runs in a process of its own")
	}
	cfg := configuration(t, sandbox.LevelAuto)
	cfg.Data, cfg.CgroupParent = dir, "fairlead-crash-test"
	c := start(t, cfg)
	c.ensure(t.Context(), t)
	stream := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.named("victim"), Argv: []string{"bash", "-c", "setsid sleep 98765 & echo ready; sleep 98765"}})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	// One beside it, which at level full is in a control group below the sandbox's.
	beside := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.named("beside"), Argv: []string{"bash", "-c", "setsid sleep 98765 & echo ready; sleep 98765"}})
	if _, err := beside.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("\nREADY\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

func TestACrashLeavesNothingBehind(t *testing.T) {
	cfg := configuration(t, sandbox.LevelAuto)
	cfg.CgroupParent = "fairlead-crash-test"
	kill := child(t, "TestRunUntilKilled", crashDirectory+"="+cfg.Data)
	awaitSleepers(t, 4)
	kill()
	awaitSleepers(t, 0)
	c := start(t, cfg)
	r, err := c.execs.ListExecs(t.Context(), &sandboxv1.ListExecsRequest{Session: c.session})
	if err != nil || len(r.GetExecs()) != 2 {
		t.Errorf("%v, %v", r, err)
	}
	for _, e := range r.GetExecs() {
		if e.GetExited().GetReason() != sandboxv1.ExitReason_EXIT_REASON_LOST {
			t.Errorf("%v", e)
		}
	}
	left := countFiles("/sys/fs/cgroup", func(path string, d fs.DirEntry) bool {
		_, group, ours := strings.Cut(path, "/fairlead-crash-test/")
		return ours && d.IsDir() && strings.Contains(group, "/") // of a workspace
	})
	if left > 0 {
		t.Errorf("%d control groups are left", left)
	}
}

// awaitSleepers waits until so many processes of the command run.
func awaitSleepers(t *testing.T, want int) {
	t.Helper()
	look, patience := time.NewTicker(20*time.Millisecond), time.NewTimer(10*time.Second)
	defer look.Stop()
	defer patience.Stop()
	for sleepers() != want {
		select {
		case <-look.C:
		case <-patience.C:
			t.Fatalf("%d processes of the command run, not %d", sleepers(), want)
		}
	}
}

// sleepers counts the processes of the command.
func sleepers() int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return -1
	}
	n := 0
	for _, f := range files {
		if raw, err := os.ReadFile(f); err == nil && bytes.Equal(raw, []byte("sleep\x0098765\x00")) {
			n++
		}
	}
	return n
}

// TestTheMachinesToolsWork runs what coders use, where the machine has it.
func TestTheMachinesToolsWork(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for _, tool := range []struct{ path, script, want string }{
			{"/usr/bin/python3", "python3 -c 'print(6 * 7)'", "42"},
			{"/usr/bin/node", "node -e 'console.log(6 * 7)'", "42"},
			{"/usr/bin/git", "git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=b commit -qm m && git log --format=%s", "m"},
			{"/usr/local/go/bin/go", "go env GOROOT", "/usr/local/go"},
		} {
			if _, err := os.Stat(tool.path); err != nil {
				t.Logf("%s is not here", tool.path)
				continue
			}
			if r := c.bash(t, tool.script); strings.TrimSpace(r.out) != tool.want {
				t.Errorf("%s: %q %q %v", tool.path, r.out, r.err, r.ExecExited)
			}
		}
	})
}

// A crash in that moment leaves it where the next start looks.
func TestTheFirstCommandRunsBelowTheDataDirectory(t *testing.T) {
	cfg := configuration(t, sandbox.LevelAuto)
	t.Setenv("TMPDIR", filepath.Join(cfg.Data, "no such folder"))
	start(t, cfg)
	left, err := filepath.Glob(filepath.Join(cfg.Data, ".probe-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
