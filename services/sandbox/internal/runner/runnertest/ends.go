package runnertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// endTests check how commands end and what they leave.
var endTests = []test{
	{"ends are told apart", nil, testEnds},
	{"a kill is the end of all that a command started", nil, testKill},
	{"what a command left in the background ends with it", nil, testBackground},
	{"a command out of memory is told", []need{groups}, testOutOfMemory},
	{"memory is bounded", []need{isolation}, testMemory},
	{"one whose sandbox breaks down is lost", []need{localInit}, testLost},
	{"one whose init hangs can be killed", []need{localInit}, testHanging},
	{"processors' time is counted", nil, testUsage},
	{"what a command writes is counted", []need{written}, testWritten},
}

func testEnds(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	for _, tc := range []struct {
		script string
		want   box.Exit
	}{
		{"exit 0", box.Exit{}},
		{"exit 137", box.Exit{Status: 137}},
		{"exit 255", box.Exit{Status: 255}},
		{"kill -9 $$", box.Exit{Signal: 9}},
		{"kill -TERM $$", box.Exit{Signal: 15}},
		{"bash -c 'kill -9 $$'; exit $?", box.Exit{Status: 137}}, // the shell reports that of its child
	} {
		if x := run(t, r, with(c, "ulimit -c 0; "+tc.script)); x.Status != tc.want.Status || x.Signal != tc.want.Signal || x.Lost || x.OOMKilled {
			t.Errorf("%s: %+v", tc.script, x.Exit)
		}
	}
	p := start(t, r, with(c, "kill -STOP $$"))
	p.Kill()
	p.Kill() // again does no harm
	if x := finish(p); x.Signal != 9 || x.Lost {
		t.Errorf("killed: %+v", x.Exit)
	}
}

// writing is a script that starts a process in a new session, which keeps writing into the file alive. The
// script then goes on.
const writing = `setsid bash -c 'trap "" TERM HUP INT; while :; do echo x >> alive; sleep 0.01; done' </dev/null >/dev/null 2>&1 & until [ -e alive ]; do sleep 0.01; done; `

// stillWrites reports whether a process writes into the workspace's file alive. It looks for ten times the
// period of the writes, because the absence of writes causes no event.
func stillWrites(t *testing.T, w string) bool {
	t.Helper()
	return grows(t, w, 100*time.Millisecond)
}

// grows reports whether the workspace's file alive grows within a time.
func grows(t *testing.T, w string, within time.Duration) bool {
	t.Helper()
	size := func() int64 {
		st, err := os.Stat(filepath.Join(w, "alive"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	before := size()
	for end := time.Now().Add(within); time.Now().Before(end); {
		<-time.After(10 * time.Millisecond)
		if size() != before {
			return true
		}
	}
	return false
}

func testKill(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, writing+"echo ready; sleep 600")
	p := launch(t, r, c)
	if !grows(t, c.Sandbox.Workspace, time.Minute) {
		t.Error("nothing writes while it runs")
	}
	p.Kill()
	if x := finish(p); x.Signal != 9 || x.Lost {
		t.Errorf("%+v", x.Exit)
	}
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("something still writes")
	}
}

func testBackground(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	started := time.Now()
	c := s.command(t, "sleep 300 & disown; setsid sleep 300 & "+writing+"echo done")
	run(t, r, c).ran(t, "the command", "done\n")
	if d := time.Since(started); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("something still writes")
	}
}

func testOutOfMemory(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	lower := with(c, `exec python3 -c "x = bytearray(200 << 20)"`)
	lower.Limits.MemoryBytes = 64 << 20
	if x := run(t, r, lower); !x.OOMKilled || x.Signal != 9 {
		t.Errorf("with less memory: %q, %+v", x.err, x.Exit)
	}
	x := run(t, r, with(c, `python3 -c "x = bytearray(200 << 20); print(len(x))"`))
	x.ran(t, "afterwards, with all", "209715200\n")
	if x.OOMKilled || x.MaxMemory < 100<<20 {
		t.Errorf("it had %d bytes: %+v", x.MaxMemory, x.Exit)
	}
}

func testMemory(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, `python3 -c "x = bytearray(2 << 30); print('had it')"`)
	if x := run(t, r, c); x.out != "" || x.Exit == (box.Exit{}) {
		t.Errorf("%q, %+v", x.out, x.Exit)
	}
	run(t, r, with(c, "echo fine")).ran(t, "afterwards", "fine\n")
	if x := run(t, r, with(c, "exit 3")); x.OOMKilled || x.Status != 3 {
		t.Errorf("a later one that fails: %+v", x.Exit)
	}
}

func testLost(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "readlink /proc/self/ns/pid > ns; setsid sleep 600 & echo ready; sleep 600")
	p := launch(t, r, c)
	_ = unix.Kill(initOf(t, c.Sandbox.Workspace), unix.SIGKILL)
	if x := finish(p); !x.Lost || x.OOMKilled {
		t.Errorf("it ended with %+v", x.Exit)
	}
	run(t, r, with(c, "echo again")).ran(t, "the next one", "again\n")
}

func testHanging(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "readlink /proc/self/ns/pid > ns; echo ready; sleep 600")
	p := launch(t, r, c)
	stopWhole(t, initOf(t, c.Sandbox.Workspace))
	p.Kill()
	if x := finish(p); !x.Lost {
		t.Errorf("it ended with %+v", x.Exit)
	}
	run(t, r, with(c, "echo again")).ran(t, "the next one", "again\n")
}

// stopWhole stops a process and returns once all its threads have stopped: after the signal alone they may
// do one thing more.
func stopWhole(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for stopped := false; !stopped; {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 || t.Context().Err() != nil {
			t.Fatalf("it has %d threads: %v", len(threads), err)
		}
		stopped = !slices.ContainsFunc(threads, func(thread string) bool {
			stat, err := os.ReadFile(thread)
			return err == nil && !bytes.Contains(stat, []byte(") T "))
		})
	}
}

func testUsage(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	x := run(t, r, s.command(t, "for i in $(seq 200000); do :; done; echo done"))
	x.ran(t, "the command", "done\n")
	if x.CPU < time.Millisecond || x.MaxMemory < 1<<20 {
		t.Errorf("it used %v and %d bytes", x.CPU, x.MaxMemory)
	}
}

func testWritten(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	for _, tc := range []struct {
		name, script string
		least, most  int64
		root         bool // without root, processes that hide their memory, such as init, are not counted
	}{
		{"into a deleted file", "exec 3> held; rm held; head -c 500000 /dev/zero >&3; echo ready; read", 500_000, 1_000_000, false},
		{
			"by orphans that have ended",
			"exec 3> held; rm held; for i in 1 2; do (head -c 500000 /dev/zero >&3 & echo $! > orphan); while kill -0 $(cat orphan) 2>/dev/null; do sleep 0.01; done; done; echo ready; read",
			1_000_000, 1_500_000, true,
		},
		{
			"by a process that hides its memory",
			`exec python3 -c "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); f = open('held', 'wb'); f.write(bytes(500000)); f.flush(); print('ready', flush=True); input()"`,
			500_000, 1_000_000, true,
		},
		{"by earlier commands", "echo ready; read", 0, 100_000, false},
	} {
		c := s.command(t, tc.script)
		c.Stdin = true
		p := launch(t, r, c)
		if n := p.Written(); n < tc.least && (!tc.root || os.Getuid() == 0) || n > tc.most {
			t.Errorf("%s: %d bytes", tc.name, n)
		}
		p.Kill()
		finish(p)
	}
}
