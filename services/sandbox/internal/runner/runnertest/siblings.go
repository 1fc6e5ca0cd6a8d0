package runnertest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// siblingTests check commands that run side by side in one workspace.
var siblingTests = []test{
	{"commands side by side end one by one", nil, testSideBySide},
	{"the first of two leaves nothing", nil, testFirstOfTwo},
	{"one that cannot be executed is not started beside another either", []need{groups}, testCannotStartBeside},
	{"one for which there is no process left is told of the limit", []need{groups}, testCannotStartForOthers},
	{"one for which there is no terminal left is told so", []need{groups, localInit}, testNoTerminalForOthers},
	{"one that another kills before it runs has ended, and has not run", []need{groups}, testKilledAtItsGate},
	{"a caller who goes away during a start ends nothing that runs", nil, testCallerLeaves},
	{"a frozen sandbox stands still", []need{groups}, testFreeze},
	{"one that is killed while it is frozen ends alone, afterwards", []need{groups}, testKilledFrozen},
	{"a frozen sandbox can be stopped", []need{groups}, testStopFrozen},
	{"a sandbox that is ending need not be frozen", []need{groups, localInit}, testFreezeEnding},
	{"without control groups nothing is frozen", nil, testNoFreeze},
}

// write writes a line to a command that waits for one.
func write(t *testing.T, p box.Process) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin(), "\n"); err != nil {
		t.Fatal(err)
	}
}

func testSideBySide(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	c.Stdin = true
	stays := launch(t, r, with(c, "echo ready; read; echo unharmed"))
	goes := launch(t, r, with(c, writing+"echo ready; read"))
	write(t, goes)
	if x := finish(goes); x.Status != 0 {
		t.Errorf("it ended with %+v", x.Exit)
	}
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("what it left still writes")
	}
	write(t, stays)
	finish(stays).ran(t, "the other one", "unharmed\n")
}

func testFirstOfTwo(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	c.Stdin = true
	first := launch(t, r, with(c, writing+"echo ready; read"))
	second := launch(t, r, with(c, "echo ready; read; echo unharmed"))
	write(t, first)
	finish(first)
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("what it left still writes")
	}
	write(t, second)
	finish(second).ran(t, "the other one", "unharmed\n")
}

// Such a command may be over before or after it is in a group of its own.
func testCannotStartBeside(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "sleep 600")
	beside := start(t, r, c)
	t.Cleanup(func() { beside.Kill(); finish(beside) })
	c.Argv, c.Dir = []string{"true"}, "/workspace/none"
	for range 200 {
		want := "cannot enter the folder /workspace/none: no such file or directory"
		if x := finish(start(t, r, c)); x.NotStarted != want {
			t.Fatalf("%+v, want %s", x, want)
		}
	}
}

// Others may use all allowed processes.
func testCannotStartForOthers(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, `exec python3 -c "
import os, time
try:
    while True:
        if os.fork() == 0: os.execlp('sleep', 'sleep', '600')
except BlockingIOError: print('ready', flush=True)
time.sleep(600)
"`)
	others := launch(t, r, c)
	for _, c.Terminal = range []*box.TerminalSize{nil, {Rows: 24, Columns: 80}} {
		x := run(t, r, with(c, "touch ran"))
		if !strings.Contains(x.NotStarted, "processes and threads") || !strings.Contains(x.NotStarted, "64") || !x.Crowded || x.out != "" {
			t.Errorf("terminal %v: %+v", c.Terminal, x)
		}
	}
	c.Terminal, c.Dir = nil, "/workspace/none"
	others.Kill()
	if x := finish(others); x.Crowded {
		t.Errorf("the others ended with %+v", x.Exit)
	}
	if x := run(t, r, with(c, "true")); x.NotStarted == "" || x.Crowded {
		t.Errorf("one that fails otherwise: %+v", x.Exit)
	}
	c.Dir = box.WorkspacePath
	run(t, r, with(c, "test ! -e ran && echo fine")).ran(t, "the next one", "fine\n")
}

// Others may use all allowed terminals.
func testNoTerminalForOthers(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, `exec python3 -c "
import os, time
try:
    while True: os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
except OSError: print('ready', flush=True)
time.sleep(600)
"`)
	others := launch(t, r, c)
	c.Terminal = &box.TerminalSize{Rows: 24, Columns: 80}
	if x := run(t, r, with(c, "echo ran")); !strings.Contains(x.NotStarted, "terminals") || x.out != "" {
		t.Errorf("%q, %+v", x.out, x.Exit)
	}
	others.Kill()
	finish(others)
	run(t, r, with(c, "echo fine")).ran(t, "afterwards", "fine\r\n")
}

// Its process waits at a gate, visible to others in the sandbox.
func testKilledAtItsGate(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	c.Stdin = true
	killer := launch(t, r, with(c, "echo ready; read; kill -9 -1; echo ready; read"))
	victim := with(c, "touch ran")
	victim.Before = func() func() error {
		return func() error {
			write(t, killer)
			readLine(t, killer.Stdout())
			return nil
		}
	}
	if x := run(t, r, victim); x.Signal != 9 || x.Lost || x.NotStarted != "" {
		t.Errorf("it ended with %+v", x.Exit)
	}
	write(t, killer)
	finish(killer).ran(t, "the other one", "")
	if _, err := os.Stat(filepath.Join(c.Sandbox.Workspace, "ran")); err == nil {
		t.Error("it ran")
	}
}

func testCallerLeaves(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "cat")
	c.Stdin = true
	p := start(t, r, c)
	other := with(c, "true")
	other.Stdin = false
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a start may or may not notice before it has made a request
		if q, err := r.Start(ctx, other); err == nil {
			finish(q)
		}
	}
	if _, err := io.WriteString(p.Stdin(), "still here\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	finish(p).ran(t, "the command", "still here\n")
}

func testFreeze(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "echo x > alive; echo ready; while :; do echo x >> alive; done")
	if frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace); frozen || err != nil {
		t.Errorf("without a sandbox: %v, %v", frozen, err)
	} else {
		thaw()
	}
	c.Limits.FileBytes, c.Sandbox.Limits.FileBytes = 1<<30, 1<<30
	p := launch(t, r, c)
	frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
	if err != nil || !frozen {
		t.Fatalf("%v, %v", frozen, err)
	}
	if stillWrites(t, c.Sandbox.Workspace) {
		t.Error("it writes")
	}
	thaw()
	p.Kill()
	if x := finish(p); x.Signal != 9 {
		t.Errorf("afterwards: %+v", x.Exit)
	}
}

// frozenFor is longer than a killed command may take to end before its sandbox is ended.
const frozenFor = 4 * time.Second

// frozenGuard is far longer than anything takes, except a wait for a thaw that never comes.
const frozenGuard = 20 * time.Second

func testKilledFrozen(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	c.Limits.FileBytes, c.Sandbox.Limits.FileBytes = 1<<30, 1<<30
	alone := launch(t, r, with(c, "echo ready; sleep 600"))
	beside := launch(t, r, with(c, "echo ready; sleep 600"))
	stays := launch(t, r, with(c, "echo x > alive; echo ready; while :; do echo x >> alive; done"))
	frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
	if err != nil || !frozen {
		t.Fatalf("%v, %v", frozen, err)
	}
	alone.Kill()
	beside.Kill()
	if grows(t, c.Sandbox.Workspace, frozenFor) {
		t.Error("the other one writes")
	}
	thaw()
	begin := time.Now()
	for _, goes := range []box.Process{alone, beside} {
		if x := finish(goes); x.Signal != 9 || x.Lost {
			t.Errorf("it ended with %+v", x.Exit)
		}
	}
	if d := time.Since(begin); d > frozenGuard {
		t.Errorf("it ended after %v", d)
	}
	if !grows(t, c.Sandbox.Workspace, time.Minute) {
		t.Error("the other one does not go on")
	}
	stays.Kill()
	if x := finish(stays); x.Signal != 9 || x.Lost {
		t.Errorf("the other one ended with %+v", x.Exit)
	}
}

func testStopFrozen(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "echo ready; sleep 600")
	p := launch(t, r, c)
	frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
	if err != nil || !frozen {
		t.Fatalf("%v, %v", frozen, err)
	}
	begin := time.Now()
	r.Stop(c.Sandbox.Workspace)
	if d := time.Since(begin); d > frozenGuard {
		t.Errorf("it was stopped after %v", d)
	}
	thaw()
	if x := finish(p); !x.Lost {
		t.Errorf("it ended with %+v", x.Exit)
	}
	run(t, r, with(c, "echo again")).ran(t, "the next one", "again\n")
}

func testFreezeEnding(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "readlink /proc/self/ns/pid > ns; echo ready; sleep 600")
	for range 5 {
		p := launch(t, r, c)
		_ = unix.Kill(initOf(t, c.Sandbox.Workspace), unix.SIGKILL)
		_, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
		if err != nil {
			t.Error(err)
		}
		thaw()
		if x := finish(p); !x.Lost {
			t.Errorf("it ended with %+v", x.Exit)
		}
	}
}

func testNoFreeze(t *testing.T, s Subject) {
	if s.Has.Groups {
		t.Skip("it has control groups")
	}
	r := s.New(t, Options{})
	c := s.command(t, "echo ready; until [ -e stop ]; do sleep 0.01; done")
	p := launch(t, r, c)
	frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
	if frozen || err != nil {
		t.Errorf("%v, %v", frozen, err)
	}
	thaw()
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "stop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if x := finish(p); x.Status != 0 {
		t.Errorf("afterwards: %+v", x.Exit)
	}
}
