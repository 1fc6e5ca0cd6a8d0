package integration

import (
	"os"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

func TestFilesInMemoryAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root may make such a file system")
	}
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		answers := c.bystander(t)
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			r := c.bash(t, "cd "+dir+" && i=0; while : > $i; do i=$((i+1)); [ $i = 20000 ] && break; done; echo $i; rm -f *; touch again && echo room; [ $i -lt 20000 ] || exit 0; exit 1")
			if !strings.HasSuffix(r.out, "room\n") || r.out == "20000\nroom\n" || r.hits() != "" {
				t.Errorf("%s: %q %.200q %v", dir, r.out, r.err, r.ExecExited)
			}
			answers()
		}
		if r := c.bash(t, "stat -c '%a %u' /tmp /dev/shm; grep -E ' (/tmp|/dev/shm) ' /proc/self/mountinfo"); !strings.HasPrefix(r.out, "1777 1000\n1777 1000\n") || strings.Count(r.out, "nosuid,nodev") != 2 {
			t.Errorf("%q", r.out)
		}
	})
}

// TestAFullTmpLeavesMemoryForCommands has an operator whose limit of memory is below the size of /tmp.
func TestAFullTmpLeavesMemoryForCommands(t *testing.T) {
	t.Parallel()
	const hog = `python3 -c "x = bytearray(100 << 20)"; exit 0`
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(c *sandbox.Config) { c.Limits.Memory, c.Limits.Tmp, c.Limits.Shm = 128<<20, 512<<20, 512<<20 })
		answers := c.bystander(t)
		r := c.bash(t, "for i in 1 2 3 4 5 6 7 8 9; do head -c 100000000 /dev/zero > /tmp/$i; head -c 10000000 /dev/zero > /dev/shm/$i; done; exit 3")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || r.GetExitCode() != 3 || r.hits() != "" {
			t.Errorf("a full /tmp: %v, %.300q", r.ExecExited, r.err)
		}
		if r := c.bash(t, "echo on"); r.out != "on\n" || r.hits() != "" {
			t.Errorf("the next command: %q %q %v", r.out, r.err, r.ExecExited)
		}
		if level == sandbox.LevelFull { // at level basic these files do not count as a command's memory
			if r := c.bash(t, hog); r.hits() != "memory" || !strings.Contains(r.LimitsHit[0].GetMessage(), "Files in /tmp and /dev/shm count as memory and take 8388") {
				t.Errorf("memory that files have: %v", r.ExecExited)
			}
			if r := c.bash(t, "exec "+hog); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_OUT_OF_MEMORY || !strings.Contains(r.GetMessage(), "/tmp") {
				t.Errorf("memory that files have: %v", r.ExecExited)
			}
		}
		if r := c.bash(t, "rm /tmp/* /dev/shm/* && python3 -c 'x = bytearray(60 << 20); print(1)'"); r.out != "1\n" || r.hits() != "" {
			t.Errorf("after the files were deleted: %q %q %v", r.out, r.err, r.ExecExited)
		}
		answers()
	})
}

// TestALowerLimitOfMemoryBoundsTmp has an agent whose limit of memory is below the operator's size of /tmp.
func TestALowerLimitOfMemoryBoundsTmp(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := start(t, func() sandbox.Config {
			c := configuration(t, level)
			c.Limits.Memory, c.Limits.Tmp = 512<<20, 256<<20
			return c
		}())
		if _, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Limits: &sandboxv1.WorkspaceLimits{MemoryBytes: 128 << 20}}); err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "df -B1 --output=size /tmp | tail -1"); strings.TrimSpace(r.out) != "67108864" {
			t.Errorf("/tmp has %q %q", r.out, r.err)
		}
		if r := c.bash(t, "head -c 100000000 /dev/zero > /tmp/x; exit 3"); r.GetExitCode() != 3 || r.hits() != "" {
			t.Errorf("%v", r.ExecExited)
		}
		if r := c.bash(t, "echo on"); r.out != "on\n" {
			t.Errorf("the next command: %q %q %v", r.out, r.err, r.ExecExited)
		}
	})
}
