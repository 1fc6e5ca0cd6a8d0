package runnertest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// sandboxTests check the life of sandboxes.
var sandboxTests = []test{
	{"commands share their sandbox", []need{isolation}, testShared},
	{"an idle sandbox ends and comes back", []need{isolation}, testIdle},
	{"above the number the longest idle one makes room", []need{isolation}, testRoom},
	{"one that is warmed is there", nil, testWarm},
	{"one that is stopped is gone with all that runs in it", nil, testStop},
	{"one of other limits is another", []need{isolation}, testOtherLimits},
	{"a spare one is taken over", nil, testSpare},
	{"neighbors do not see each other", []need{isolation}, testNeighbors},
	{"init withstands its commands", []need{isolation, localInit}, testInit},
	{"nothing leaks", nil, testLeak},
	{"a closed runner starts nothing", nil, testClosed},
}

// mark leaves a file in a sandbox's /tmp that lasts as long as the sandbox.
const mark = "touch /tmp/mark"

func marked(t *testing.T, r box.Runner, c box.Command) bool {
	t.Helper()
	return run(t, r, with(c, "[ -e /tmp/mark ]")).Status == 0
}

func testShared(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, mark)
	run(t, r, c)
	if !marked(t, r, c) {
		t.Error("the next command has another sandbox")
	}
}

func testIdle(t *testing.T, s Subject) {
	r := s.New(t, Options{Idle: 50 * time.Millisecond})
	c := s.command(t, mark+"; echo kept > file")
	run(t, r, c)
	for tries := 0; marked(t, r, c); tries++ { // each look restarts the idle timer
		if tries == 100 {
			t.Fatal("it does not end")
		}
		pause := time.NewTimer(100 * time.Millisecond)
		<-pause.C
	}
	run(t, r, with(c, "cat file; ls /tmp")).ran(t, "afterwards", "kept\n")
}

func testRoom(t *testing.T, s Subject) {
	r := s.New(t, Options{Max: 2})
	a, b, c := s.command(t, mark), s.command(t, mark), s.command(t, mark)
	run(t, r, a)
	run(t, r, b)
	run(t, r, c)
	if !marked(t, r, b) || !marked(t, r, c) {
		t.Error("another one ended")
	}
	busy := []box.Process{launch(t, r, with(b, "echo ready; sleep 600")), launch(t, r, with(c, "echo ready; sleep 600"))}
	if _, err := r.Start(t.Context(), a); !errors.Is(err, box.ErrTooManySandboxes) || !strings.Contains(err.Error(), "2 of 2") {
		t.Errorf("with all in use: %v", err)
	}
	for _, p := range busy {
		p.Kill()
		finish(p)
	}
	if marked(t, r, a) {
		t.Error("the first one was still there")
	}
}

func testWarm(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "echo here")
	if err := r.Warm(t.Context(), c.Sandbox); err != nil {
		t.Fatal(err)
	}
	run(t, r, c).ran(t, "the command", "here\n")
}

func testStop(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, writing+mark+"; echo ready; sleep 600")
	r.Stop(c.Sandbox.Workspace) // without a sandbox it does nothing
	p := launch(t, r, c)
	r.Stop(c.Sandbox.Workspace)
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("something still writes")
	}
	if x := finish(p); !x.Lost && x.Signal != 9 {
		t.Errorf("it ended with %+v", x.Exit)
	}
	if s.Has.Isolated && marked(t, r, c) {
		t.Error("the sandbox is still there")
	}
	if err := os.RemoveAll(c.Sandbox.Workspace); err != nil {
		t.Error(err)
	}
}

func testOtherLimits(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, mark)
	run(t, r, c)
	c.Sandbox.Limits.TmpBytes *= 2
	if marked(t, r, c) {
		t.Error("it is the same")
	}
	run(t, r, with(c, mark))
	if !marked(t, r, c) {
		t.Error("it was replaced again")
	}
}

func testSpare(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	spare := c.Sandbox
	spare.Spare = true
	if err := r.Warm(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	c.Sandbox.ID, c.Sandbox.Workspace, c.Sandbox.Home = "taken", spare.Workspace+".taken", spare.Home+".taken"
	if err := errors.Join(os.Rename(spare.Workspace, c.Sandbox.Workspace), os.Rename(spare.Home, c.Sandbox.Home)); err != nil {
		t.Fatal(err)
	}
	r.Move(spare.Workspace, c.Sandbox)
	run(t, r, with(c, "echo x > file; echo y > ~/file; echo moved")).ran(t, "the command", "moved\n")
	for _, dir := range []string{c.Sandbox.Workspace, c.Sandbox.Home} {
		if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
			t.Error(err)
		}
	}
}

func testNeighbors(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	a, b := s.command(t, "touch /tmp/mine /dev/shm/mine; echo ready; read; echo unharmed"), s.command(t, "")
	a.Stdin = true
	p := launch(t, r, a)
	run(t, r, with(b, "kill -9 -1; true"))
	run(t, r, with(b, "ls /tmp /dev/shm /workspace; find /proc/[0-9]*/root/tmp -name mine 2>/dev/null; true")).
		ran(t, "the other one", "/dev/shm:\n\n/tmp:\n\n/workspace:\n")
	if _, err := io.WriteString(p.Stdin(), "\n"); err != nil {
		t.Fatal(err)
	}
	finish(p).ran(t, "the first one", "unharmed\n")
}

func testInit(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, mark)
	run(t, r, c)
	// Commands inherit init's scheduling and limits.
	place := with(c, `cut -d' ' -f19,41 /proc/self/stat; grep Cpus_allowed_list /proc/self/status; ionice; ulimit -a`)
	before := run(t, r, place)
	for name, script := range map[string]string{
		"every signal, many times": `for i in $(seq 200); do for s in $(seq 64); do kill -$s 1 2>/dev/null; done; done; echo fine`,
		"its limits":               `prlimit --pid 1 --nofile=1:1 2>/dev/null && echo BROKEN; prlimit --pid 1 --cpu=1:1 2>/dev/null && echo BROKEN; echo fine`,
		"its limits, by a thread":  `for t in $(ls /proc/1/task); do prlimit --pid $t --nofile=64:64 && echo BROKEN; done; echo fine`,
		"its memory and files":     `for f in mem environ fd fdinfo exe cwd root maps; do cat /proc/1/$f >/dev/null 2>&1 && echo BROKEN; ls /proc/1/$f/ >/dev/null 2>&1 && echo BROKEN; done; echo fine`,
		"orphans, many":            `for i in $(seq 300); do (setsid true &); done; echo fine`,
		"having it trace":          `exec python3 -c "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGCONT); os.kill(os.getpid(), signal.SIGURG); print('fine')"`,
		"its socket":               `exec 9<>/proc/1/fd/3 && echo BROKEN; echo fine`,
		"its priority":             `{ renice -n 19 -p 1; renice -n 19 -g 1; renice -n 19 -u $(id -u); chrt -i -p 0 1; taskset -pc 0 1; ionice -c 3 -p 1; ionice -c 3 -P 1; ionice -c 3 -u $(id -u); } >/dev/null; echo fine`,
	} {
		run(t, r, with(c, "{ "+script+"; } 2>/dev/null")).ran(t, name, "fine\n")
	}
	run(t, r, place).ran(t, "what commands have from it", before.out)
	under := start(t, r, with(c, `trap '' USR1; while :; do kill -USR1 -1; done`))
	for range 50 { // the signal may come at any moment of their creation
		if x := finish(start(t, r, with(c, "echo fine"))); x.Signal != int(unix.SIGUSR1) {
			x.ran(t, "a command that is shot at", "fine\n")
		}
	}
	under.Kill()
	finish(under)
	if !marked(t, r, c) {
		t.Error("the sandbox had to be made again")
	}
}

func testLeak(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	round := func() {
		c := s.command(t, "echo x")
		for range 3 {
			run(t, r, c).ran(t, "the command", "x\n")
		}
		c.Terminal = &box.TerminalSize{Rows: 1, Columns: 1}
		run(t, r, c)
		r.Stop(c.Sandbox.Workspace)
	}
	round()
	before := descriptors(t)
	const rounds = 5
	for range rounds {
		round()
	}
	// A driver's connections come and go; a leak grows in every round.
	if after := descriptors(t); after-before >= rounds {
		t.Errorf("%d open files, then %d", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func testClosed(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "true")
	closer, ok := r.(io.Closer)
	if !ok {
		t.Fatal("it cannot be closed")
	}
	run(t, r, c)
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(context.WithoutCancel(t.Context()), c); !errors.Is(err, box.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// initOf returns the first process of a sandbox, as the host counts. One of its commands must have written
// the name of its process namespace into the file ns.
func initOf(t *testing.T, workspace string) int {
	t.Helper()
	name, err := os.ReadFile(filepath.Join(workspace, "ns"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		status, err := os.ReadFile("/proc/" + d.Name() + "/status")
		if err != nil {
			continue
		}
		link, err := os.Readlink("/proc/" + d.Name() + "/ns/pid")
		if err != nil || link+"\n" != string(name) {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok && strings.HasSuffix(numbers, "\t1\n") {
				pid, err := strconv.Atoi(d.Name())
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatal("its init was not found")
	return 0
}
