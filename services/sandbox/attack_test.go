package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// python is a prelude for attacks by system call.
const python = `python3 - <<'E'
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(n, *a):
    r = libc.syscall(n, *a)
    return "ok" if r >= 0 else os.strerror(ctypes.get_errno())
%s
E`

// TestAttacksFail runs attacks. Each prints BROKEN when it succeeds, and DONE when
// it came to its end: one that merely does not run proves nothing.
func TestAttacksFail(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("top secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRLEAD_TEST_SECRET", "top secret")
	neighbor := exec.Command("sleep", "600")
	if err := neighbor.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = neighbor.Process.Kill(); _ = neighbor.Wait() }()
	syscalls := func(body string) string { return fmt.Sprintf(python, body) }
	attacks := []struct{ name, script string }{
		{"reading a file of the host", "cat " + secret + " && echo BROKEN"},
		{"reading it by way of a process", "cat /proc/1/root" + secret + " /proc/*/root" + secret + " && echo BROKEN"},
		{"reading it by a link", "ln -s " + secret + " l; cat l && echo BROKEN"},
		{"seeing the host's users", "grep -vE '^(root|agent|nobody):' /etc/passwd && echo BROKEN; [ -e /etc/shadow ] && echo BROKEN"},
		{"seeing home folders", "[ \"$(ls /home)\" = agent ] || echo BROKEN; ls /root && echo BROKEN"},
		{"seeing the service's environment", "cat /proc/*/environ 2>/dev/null | grep -a 'top secret' && echo BROKEN; env | grep 'top secret' && echo BROKEN"},
		{"seeing processes of the host", fmt.Sprintf("kill -0 %d && echo BROKEN; [ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] || echo BROKEN", neighbor.Process.Pid)},
		{"writing outside", "for d in / /usr /usr/bin /etc /dev /lib /home /var /run /sys /proc; do touch $d/x 2>/dev/null && echo BROKEN $d; done"},
		{"replacing a program", "cp /bin/true /usr/bin/bash && echo BROKEN; mv /etc/passwd /etc/p && echo BROKEN"},
		{"making the root writable", "mount -o remount,rw / && echo BROKEN; mount -t tmpfs x /usr && echo BROKEN"},
		{"the network", fmt.Sprintf("(exec 3<>/dev/tcp/127.0.0.1/%d) && echo BROKEN; (exec 3<>/dev/tcp/1.1.1.1/80) && echo BROKEN; grep -c : /proc/net/dev | grep -v 1 && echo BROKEN", port)},
		{"sockets of the host", "find / -xdev -type s 2>/dev/null | grep . && echo BROKEN"},
		{"becoming root", "su -c id && echo BROKEN; sudo -n id && echo BROKEN; [ $(id -u) = 1000 ] || echo BROKEN"},
		{"a setuid program", "cp /bin/bash b; chmod 6755 b; ./b -p -c 'id -u' | grep -x 0 && echo BROKEN; find / -xdev -perm -4000 -type f -exec {} --version \\; >/dev/null 2>&1; grep -q 'NoNewPrivs:.1' /proc/self/status || echo BROKEN"},
		{"a capability", "grep -h '^Cap' /proc/self/status | grep -v 0000000000000000 && echo BROKEN"},
		{"a new user namespace", "unshare -U true && echo BROKEN; unshare -r id && echo BROKEN"},
		{"a device", "mknod d b 254 0 && echo BROKEN; mknod c c 1 3 && echo BROKEN; [ -e /dev/vda ] && echo BROKEN; [ -e /dev/mem ] && echo BROKEN; [ -e /dev/kvm ] && echo BROKEN"},
		// Init runs as the command's user, so what it could be made to do must be no more
		// than what the command can do itself.
		{"gaining something from init", "for f in Seccomp NoNewPrivs CapEff CapPrm CapBnd Uid; do [ \"$(grep \"^$f:\" /proc/1/status)\" = \"$(grep \"^$f:\" /proc/self/status)\" ] || echo BROKEN $f; done; ls -l /proc/1/fd | grep -vE 'total|eventfd|/dev/null|pipe:' && echo BROKEN"},
		{"filling /tmp", "head -c 5000000 /dev/zero > /tmp/x && echo BROKEN; rm -f /tmp/x"},
		{"filling /dev/shm", "head -c 5000000 /dev/zero > /dev/shm/x && echo BROKEN"},
		{"kernel settings", "echo 1 > /proc/sys/kernel/panic && echo BROKEN; echo x > /proc/sysrq-trigger && echo BROKEN; echo 0 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj && echo BROKEN"},
		{"the control groups", "find / -xdev -name cgroup.procs 2>/dev/null | grep . && echo BROKEN; ls /sys/fs/cgroup 2>/dev/null | grep . && echo BROKEN"},
		{"raising a limit", "ulimit -n 1000000 && echo BROKEN; ulimit -c unlimited && echo BROKEN"},
		{"killing all", "kill -9 -1; true"},
		{"system calls that are refused", syscalls(`
for name, n, a in [("keyctl", 250, (0, -3, 1)), ("add_key", 248, (b"user", b"a", b"b", 1, -2)), ("io_uring", 425, (8, ctypes.create_string_buffer(256))),
    ("userfaultfd", 323, (1,)), ("bpf", 321, (0, 0, 0)), ("perf", 298, (0, 0, -1, -1, 0)), ("ptrace", 101, (16, 1, 0, 0)), ("mount", 165, (b"x", b"/tmp", b"tmpfs", 0, 0)),
    ("unshare", 272, (0x10000000,)), ("setns", 308, (0, 0)), ("personality", 135, (0x0400000,)), ("kexec", 246, (0, 0, 0, 0)), ("clone3", 435, (0, 0)),
    ("x32 getpid", 0x40000000 + 39, ()), ("process_vm_readv", 310, (1, 0, 0, 0, 0, 0))]:
    r = call(n, *a)
    if r == "ok" or r not in ("Operation not permitted", "Function not implemented"):
        print("BROKEN", name, r)`)},
		{"sockets beside the network namespace", syscalls(`
for name, a in [("vsock", (40, 1, 0)), ("packet", (17, 3, 0)), ("raw", (2, 3, 1)), ("netfilter", (16, 3, 12)), ("audit", (16, 3, 9)), ("alg", (38, 5, 0)), ("bluetooth", (31, 1, 0))]:
    try:
        socket.socket(*a); print("BROKEN", name)
    except OSError: pass`)},
		{"putting input into a terminal", syscalls(`
import fcntl, pty
m, s = pty.openpty()
for request in (0x5412, 0x5412 | 1 << 32, 0x541C, 0x5423):
    r = call(16, s, ctypes.c_ulong(request), ctypes.c_char_p(b"x"))
    if r != "Operation not permitted": print("BROKEN", hex(request), r)`)},
		{"a link in the place of the workspace", "cd /; rm -rf /workspace; ln -s / /workspace && echo BROKEN; mv /workspace /w && echo BROKEN"},
	}
	eachLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		for _, a := range attacks {
			r := c.bash(t, a.script+"\necho DONE")
			if strings.Contains(r.out, "BROKEN") {
				t.Errorf("%s: %s\n%s", a.name, r.out, r.err)
			}
			if !strings.Contains(r.out, "DONE") && a.name != "killing all" {
				t.Errorf("%s did not come to its end: %v %q %q", a.name, r.ExecExited, r.out, r.err)
			}
		}
		if r := c.bash(t, "echo fine"); r.out != "fine\n" {
			t.Errorf("afterwards: %v", r.ExecExited)
		}
	})
}

// TestNeighboursAreOutOfReach runs two sessions side by side.
func TestNeighboursAreOutOfReach(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
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
		if r.out != "1000\n" {
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
		if seen[uid] || uid < "300000" || len(uid) != 6 {
			t.Errorf("user %s", uid)
		}
		seen[uid] = true
	}
}

// TestServicesThatShareUsersAreOutOfReach runs two services whose first workspaces
// have the same user, as two services of one machine may.
func TestServicesThatShareUsersAreOutOfReach(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		c, other := open(t, level), open(t, level)
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
	c := open(t, sandbox.LevelBasic)
	_, err := c.write(t, strings.Repeat("a/", 1500)+"file", "x", nil)
	if err == nil {
		t.Error("the file was written")
	}
	wantReason(t, err, "PATH_ESCAPES")
	if _, err := c.write(t, strings.Repeat("a/", 200)+"file", "x", nil); err != nil {
		t.Error(err)
	}
	if r, err := c.exec(t.Context(), "echo fine", nil); err != nil || r.out != "fine\n" {
		t.Errorf("%q %v", r.out, err)
	}
}
