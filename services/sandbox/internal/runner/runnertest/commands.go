package runnertest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// commandTests check how commands run and end.
var commandTests = []test{
	{"a command sees its sandbox alone", []need{isolation}, testView},
	{"its streams are apart", nil, testStreams},
	{"its input is what is written", nil, testInput},
	{"its environment and folder are what was asked for", nil, testEnvironment},
	{"one that cannot be executed is not started", nil, testCannotStart},
	{"one that may not run does not", nil, testForbidden},
	{"a terminal is its own", nil, testTerminal},
	{"a terminal that it closes and opens again is still read", nil, testTerminalAgain},
	{"a signal reaches it", nil, testSignal},
	{"it starts with no signal ignored or blocked", []need{isolation}, testSignalsAreAsUsual},
	{"its files are the workspace's", nil, testFiles},
	{"long arguments arrive", nil, testLongArguments},
	{"much output arrives", nil, testMuchOutput},
	{"its limits are in place", []need{isolation}, testLimits},
	{"its pauses are as exact as elsewhere", nil, testPauses},
}

func testView(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	for _, tc := range []struct{ name, script, want string }{
		{"it sees the workspace as its own", "touch x; stat -c %u:%g x; pwd", "1000:1000\n/workspace\n"},
		{"it inherits no descriptor", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "},
		{"it has no capability", "grep -h Cap /proc/self/status | tr -d '\\t' | sort -u | tr '\\n' ' '",
			"CapAmb:0000000000000000 CapBnd:0000000000000000 CapEff:0000000000000000 CapInh:0000000000000000 CapPrm:0000000000000000 "},
		{"it is filtered", "grep -h ^Seccomp: /proc/self/status", "Seccomp:\t2\n"},
		{"it gains no privilege", "grep -h ^NoNewPrivs: /proc/self/status", "NoNewPrivs:\t1\n"},
		{"its environment is clean", "env | sort | cut -d= -f1 | tr '\\n' ' '", "GOTOOLCHAIN HOME LANG LOGNAME PATH PWD SHELL SHLVL TERM TMPDIR USER _ "},
		{"its home is writable", "cd; pwd; touch x && echo ok", "/home/agent\nok\n"},
		{"the root is not", "touch /x /etc/x /usr/x /dev/x 2>/dev/null || echo no", "no\n"},
		{"it sees its own processes alone", "[ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] && echo few", "few\n"},
		{"it has no network", "(exec 3<>/dev/tcp/1.1.1.1/80) 2>/dev/null || echo none; grep -c : /proc/net/dev", "none\n1\n"},
		{"the machine's users are not there", "cut -d: -f1 /etc/passwd | tr '\\n' ' '", "root agent nobody "},
	} {
		run(t, r, s.command(t, tc.script)).ran(t, tc.name, tc.want)
	}
}

func testStreams(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	x := run(t, r, s.command(t, "echo to out; echo to err >&2"))
	x.ran(t, "both", "to out\n")
	if x.err != "to err\n" {
		t.Errorf("standard error is %q", x.err)
	}
	if !s.Has.Isolated {
		return
	}
	x = run(t, r, s.command(t, "echo hi > /dev/stderr; echo ho > /dev/stdout"))
	x.ran(t, "again by name", "ho\n")
	if x.err != "hi\n" {
		t.Errorf("standard error by name is %q", x.err)
	}
}

func testInput(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "cat; echo end")
	run(t, r, c).ran(t, "without input", "end\n")
	c.Stdin = true
	p := start(t, r, c)
	go func() {
		_, _ = io.WriteString(p.Stdin(), "a line\n")
		_ = p.Stdin().Close()
	}()
	finish(p).ran(t, "with input", "a line\nend\n")
}

func testEnvironment(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, `echo "$GREETING $USER"; basename "$PWD"; [ "$HOME" != /root ] && touch ~/there && echo home`)
	if err := os.Mkdir(filepath.Join(c.Sandbox.Workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Env, c.Dir = []string{"GREETING=good day", "USER=somebody"}, box.WorkspacePath+"/sub"
	run(t, r, c).ran(t, "the command", "good day somebody\nsub\nhome\n")
	if _, err := os.Stat(filepath.Join(c.Sandbox.Home, "there")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "sub", "tool"), []byte("#!/bin/sh\necho found\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Argv = []string{"tool"}
	for _, path := range []string{":/usr/bin:/bin", ".:/usr/bin:/bin", "/none:../" + filepath.Base(c.Dir)} {
		c.Env = []string{"PATH=" + path}
		run(t, r, c).ran(t, "a program in the folder, by "+path, "found\n")
	}
}

// The threads of a sandbox's init may have a coarser timer slack; commands must not inherit it, on kernels
// that support timer slack.
func testPauses(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	run(t, r, s.command(t, `if [ -e /proc/self/timerslack_ns ]; then cat /proc/self/timerslack_ns; else echo 50000; fi`)).ran(t, "the command", "50000\n")
}

func testCannotStart(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	for _, tc := range []struct {
		dir, want string
		argv      []string
	}{
		{box.WorkspacePath, "cannot execute no-such-program: no such file or directory", []string{"no-such-program"}},
		{box.WorkspacePath, "cannot execute /etc/passwd: permission denied", []string{"/etc/passwd"}},
		{"/workspace/none", "cannot enter the folder /workspace/none: no such file or directory", []string{"true"}},
		{"/etc/passwd", "cannot enter the folder /etc/passwd: not a directory", []string{"true"}},
		{"/", "the arguments and the environment are too long together", []string{"true", strings.Repeat("x", 3<<20)}},
	} {
		c := s.command(t, "")
		c.Argv, c.Dir = tc.argv, tc.dir
		for _, c.Terminal = range []*box.TerminalSize{nil, {Rows: 24, Columns: 80}} {
			if x := finish(start(t, r, c)); x.NotStarted != tc.want || x.out != "" {
				t.Errorf("%.40v, terminal %v: %+v, want %s", tc.argv, c.Terminal, x, tc.want)
			}
		}
	}
}

// The work that must precede a command may fail.
func testForbidden(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "touch ran")
	no := errors.New("the disk is full")
	for _, beside := range []bool{false, true} {
		if beside {
			p := start(t, r, with(c, "sleep 600"))
			t.Cleanup(func() { p.Kill(); finish(p) })
		}
		begun := 0
		c.Before = func() func() error { begun++; return func() error { return no } }
		if _, err := r.Start(t.Context(), c); !errors.Is(err, no) || begun != 1 {
			t.Errorf("begun %d times: %v, want %v", begun, err, no)
		}
		c.Before = nil
		run(t, r, with(c, "test ! -e ran && echo fine")).ran(t, "the next one", "fine\n")
		begun = 0
		c.Before = func() func() error { begun++; return nil } // nothing to wait for
		run(t, r, with(c, "echo fine")).ran(t, "one that waits for nothing", "fine\n")
		if begun != 1 {
			t.Errorf("begun %d times", begun)
		}
	}
}

func testTerminal(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "tty >/dev/null && stty size && echo > /dev/tty; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done")
	c.Terminal = &box.TerminalSize{Rows: 33, Columns: 99}
	p := start(t, r, c)
	if p.Stderr() != nil {
		t.Error("it has a standard error")
	}
	for _, want := range []string{"33 99\r\n", "\r\n", "ready\r\n"} {
		if got := readLine(t, p.Stdout()); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	if err := p.Resize(box.TerminalSize{Rows: 10, Columns: 20}); err != nil {
		t.Error(err)
	}
	if x := finish(p); x.out != "10 20\r\n" || x.Status != 3 {
		t.Errorf("resized: %q, %+v", x.out, x.Exit)
	}
	c.Argv = []string{"bash", "-c", "read line; echo got $line; cat; echo end"}
	p = start(t, r, c)
	if _, err := io.WriteString(p.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "got hello\r\n"; {
		got = readLine(t, p.Stdout()) // after the terminal's echo
	}
	if err := p.Stdin().Close(); err != nil {
		t.Error(err)
	}
	if x := finish(p); !strings.HasSuffix(x.out, "end\r\n") || x.Status != 0 {
		t.Errorf("at the end of input: %q, %+v", x.out, x.Exit)
	}
}

// A program that asks for a password opens its terminal, whatever its standard streams are.
func testTerminalAgain(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "exec </dev/null >/dev/null 2>&1; sleep 0.2; head -c 200000 /dev/zero | tr '\\0' x >/dev/tty; echo end >/dev/tty; exit 7")
	c.Terminal = &box.TerminalSize{Rows: 24, Columns: 80}
	p := start(t, r, c)
	late := time.AfterFunc(20*time.Second, p.Kill)
	defer late.Stop()
	if x := finish(p); len(x.out) != 200000+len("end\r\n") || x.Status != 7 {
		t.Errorf("%d bytes, %+v", len(x.out), x.Exit)
	}
}

func testSignal(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	p := launch(t, r, s.command(t, `trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.01; done`))
	if err := p.Signal(15); err != nil {
		t.Fatal(err)
	}
	if x := finish(p); x.Status != 9 || x.out != "caught\n" {
		t.Errorf("output %q, exit %+v", x.out, x.Exit)
	}
	if err := p.Signal(15); err != nil {
		t.Errorf("after its end: %v", err)
	}
	if err := p.Resize(box.TerminalSize{Rows: 1, Columns: 1}); !errors.Is(err, box.ErrNoTerminal) {
		t.Errorf("the size of no terminal: %v", err)
	}
}

// A shell cannot trap a signal that was ignored when it started. Not every kernel shows the masks.
func testSignalsAreAsUsual(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, `! grep -E '^Sig(Blk|Ign):.*[1-9a-f]' /proc/self/status && for n in 1 2 3 13 15 34 64; do trap "echo -n $n," $n; kill -$n $$; done`)
	want := "1,2,3,13,15,34,64,"
	run(t, r, c).ran(t, "one", want)
	beside := launch(t, r, with(c, "echo ready; sleep 600"))
	run(t, r, c).ran(t, "one beside another", want)
	beside.Kill()
	finish(beside)
}

func testFiles(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "cat from-host; echo inside > from-command; chmod 640 from-command")
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "from-host"), []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, r, c).ran(t, "reading", "outside\n")
	name := filepath.Join(c.Sandbox.Workspace, "from-command")
	if b, err := os.ReadFile(name); err != nil || string(b) != "inside\n" {
		t.Errorf("the host reads %q, %v", b, err)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st, err)
	}
}

func testLongArguments(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.command(t, "")
	c.Argv = append([]string{"bash", "-c", `echo $# ${#50}`, "bash"}, slices.Repeat([]string{strings.Repeat("x", 1000)}, 100)...)
	run(t, r, c).ran(t, "the command", "100 1000\n")
}

func testMuchOutput(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	x := run(t, r, s.command(t, "head -c 8000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero | tr '\\0' y >&2"))
	if len(x.out) != 8_000_000 || len(x.err) != 1_000_000 || x.Status != 0 {
		t.Errorf("%d and %d bytes, %+v", len(x.out), len(x.err), x.Exit)
	}
}

func testLimits(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	for _, tc := range []struct{ name, script, want string }{
		{"open files", "ulimit -n", "128\n"},
		{"core files", "ulimit -c", "0\n"},
		{"the size of a file", "head -c 3000000 /dev/zero 2>/dev/null > x; stat -c %s x", "1048576\n"},
		{"/tmp", "head -c 3000000 /dev/zero 2>/dev/null > /tmp/x || echo full; rm /tmp/x", "full\n"},
		{"/dev/shm", "for i in 1 2 3 4; do head -c 500000 /dev/zero 2>/dev/null > /dev/shm/$i || echo full $i; done; rm /dev/shm/*", "full 3\nfull 4\n"},
	} {
		run(t, r, s.command(t, tc.script)).ran(t, tc.name, tc.want)
	}
	x := run(t, r, s.command(t, `exec python3 -c "
import os, sys
n = 0
try:
    while n < 200:
        if os.fork() == 0: os.execlp('sleep', 'sleep', '60')
        n += 1
except BlockingIOError: print('refused', n < 80)
"`))
	x.ran(t, "processes", "refused True\n")
}
