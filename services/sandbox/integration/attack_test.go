package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// attacks are all of them.
var attacks = []category{
	{name: "files", attacks: fileAttacks},
	{name: "processes", attacks: processAttacks},
	{name: "kernel", attacks: kernelAttacks},
	{name: "namespaces and mounts", attacks: namespaceAttacks},
	{name: "network", attacks: networkAttacks},
	{name: "rights", attacks: rightsAttacks},
	{name: "exhaustion", attacks: exhaustionAttacks, busy: true},
	{name: "the service as it looks in from outside", attacks: rpcAttacks},
	{name: "archives", attacks: archiveAttacks},
}

// TestNeighboursAreOutOfReach runs two sessions side by side.
func TestNeighboursAreOutOfReach(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		victim := c.launch(t.Context(), t, &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"bash", "-c", "echo private > file; echo ready; until [ -e stop ]; do sleep 0.05; done; echo unharmed"},
		})
		if _, err := victim.Recv(); err != nil {
			t.Fatal(err)
		}
		other := *c
		other.session = "sessions/two"
		other.ensure(t.Context(), t)
		other.bash(t, "kill -9 -1; true")
		r := other.bash(t, "ls -A /workspace; grep -r private /workspace /home /tmp /proc/[0-9]*/root/workspace 2>/dev/null; find /proc/[0-9]*/cwd/ -name file 2>/dev/null; stat -c %u /workspace")
		if r.out != standardFolders+"1000\n" {
			t.Errorf("it sees %q", r.out)
		}
		if _, err := other.read(t, "../../one/workspace/file"); err == nil {
			t.Error("the other session's file can be read")
		}
		if _, err := c.write(t, "stop", "", nil); err != nil {
			t.Fatal(err)
		}
		if r, err := follow(victim); err != nil || r.out != "unharmed\n" {
			t.Errorf("%q %v %v", r.out, r.ExecExited, err)
		}
	})
}

func TestWorkspacesHaveUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give users")
	}
	cfg := configuration(t, sandbox.LevelFull)
	c := start(t, cfg)
	seen := map[string]bool{}
	for _, session := range []string{"one", "two"} {
		c.session = "sessions/" + session
		c.ensure(t.Context(), t)
		if r := c.bash(t, "echo x > own"); r.GetExitCode() != 0 {
			t.Errorf("%q", r.err)
		}
		out, err := exec.Command("stat", "-c", "%u", filepath.Join(cfg.Data, "default", session, "workspace", "own")).Output()
		if err != nil {
			t.Fatal(err)
		}
		uid := strings.TrimSpace(string(out))
		if seen[uid] || uid < strconv.Itoa(cfg.UIDBase) || len(uid) != len(strconv.Itoa(cfg.UIDBase)) {
			t.Errorf("user %s", uid)
		}
		seen[uid] = true
	}
}

// TestServicesThatShareUsersAreOutOfReach runs two services whose first workspaces
// have the same user, as two services of one machine may.
func TestServicesThatShareUsersAreOutOfReach(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		cfg := configuration(t, level)
		same := func(c *sandbox.Config) { c.UIDBase = cfg.UIDBase }
		c, other := open(t, level, same), open(t, level, same)
		victim := c.launch(t.Context(), t, &sandboxv1.ExecStart{
			Call: c.call(), Argv: []string{"bash", "-c", "echo private > file; exec 3> held; echo ready; until [ -e stop ]; do sleep 0.05; done; echo unharmed"},
		})
		if _, err := victim.Recv(); err != nil {
			t.Fatal(err)
		}
		other.bash(t, "kill -9 -1; true")
		r := other.bash(t, `for i in $(seq 2 300); do [ -e /proc/$i/root/workspace/file ] && echo "reached $i"; done
			grep -rs private /workspace /home /tmp /dev/shm; find / -xdev -name held 2>/dev/null; ipcs -qms 2>/dev/null | grep 0x; stat -c %u /workspace`)
		if r.out != "1000\n" {
			t.Errorf("it sees %q", r.out)
		}
		if _, err := c.write(t, "stop", "", nil); err != nil {
			t.Fatal(err)
		}
		if r, err := follow(victim); err != nil || !strings.HasSuffix(r.out, "unharmed\n") {
			t.Errorf("%q %v %v", r.out, r.ExecExited, err)
		}
	})
}

// TestAWriteCannotCloseTheWorkspace writes so deep that no command could start
// any more, because the workspace cannot be counted.
func TestAWriteCannotCloseTheWorkspace(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic)
	_, err := c.write(t, strings.Repeat("a/", 1500)+"file", "x", nil)
	if err == nil {
		t.Error("the file was written")
	}
	wantReason(t, err, "BAD_PATH")
	if _, err := c.write(t, strings.Repeat("a/", 200)+"file", "x", nil); err != nil {
		t.Error(err)
	}
	if r, err := c.exec(t.Context(), "echo fine", nil); err != nil || r.out != "fine\n" {
		t.Errorf("%q %v", r.out, err)
	}
}
