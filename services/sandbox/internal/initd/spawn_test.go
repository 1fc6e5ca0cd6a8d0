package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// outcome is what became of a process.
type outcome struct {
	output string
	status int // 128 and the signal of one that a signal ended
	fault  error
	folder bool
}

// spawned runs a command without a service. through lets it through its gate.
func spawned(t *testing.T, c *wire.Command, gate int, through func()) outcome {
	t.Helper()
	out, theirs := pipe(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if c, err = wire.DecodeCommand(c.Encode()); err != nil {
		t.Fatal(err)
	}
	p, err := newChild(c, []int{int(null.Fd()), int(theirs.Fd()), int(theirs.Fd())}, gate)
	if err != nil {
		return outcome{fault: err}
	}
	pid, err := p.start()
	if err != nil {
		t.Fatal(err)
	}
	if through != nil {
		through()
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	raw := make([]byte, 1<<16)
	n, _ := out.Read(raw)
	o := outcome{output: string(raw[:max(n, 0)]), status: status.ExitStatus()}
	if status.Signaled() {
		o.status = 128 + int(status.Signal())
	}
	o.fault, o.folder = p.fault()
	return o
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// ignoreSignals has this process ignore the signals that init does, while the test lasts.
func ignoreSignals(t *testing.T) {
	t.Helper()
	act := func(n unix.Signal, a, old *action) {
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), at(a), at(old), 8, 0, 0); e != 0 {
			t.Fatalf("signal %d: %v", n, e)
		}
	}
	for _, n := range []unix.Signal{32, 33, 34} {
		var old, none action
		act(n, &action{handler: ignore}, &old)
		t.Cleanup(func() { act(n, &old, &none) })
	}
}

func TestSpawn(t *testing.T) {
	ignoreSignals(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"script": "echo $0 $1", "deaf": "", "bin/tool": "#!/bin/sh\necho found"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		argv []string
		dir  string
		with func(c *wire.Command)
		want outcome
	}{
		{name: "a program", argv: []string{"/bin/sh", "-c", "pwd; exit 3"}, want: outcome{output: dir + "\n", status: 3}},
		{name: "one that a signal ends", argv: []string{"/bin/sh", "-c", "kill -9 $$"}, want: outcome{status: 137}},
		{name: "one of a folder of PATH", argv: []string{"tool"}, want: outcome{output: "found\n"}},
		{name: "a script without a first line", argv: []string{"./script", "one"}, want: outcome{output: "./script one\n"}},
		{name: "one that is not there", argv: []string{"/none"}, want: outcome{status: 127, fault: unix.ENOENT}},
		{name: "one that PATH does not find", argv: []string{"none"}, want: outcome{fault: unix.ENOENT}},
		{name: "one without execute permission", argv: []string{"./text"}, want: outcome{status: 127, fault: unix.EACCES}},
		{name: "one of a relative folder of PATH, of many", argv: []string{"tool"}, with: func(c *wire.Command) {
			c.Env = []string{"PATH=" + strings.Repeat(":", 50_000) + strings.Repeat("x", 5000) + ":bin"}
		}, want: outcome{output: "found\n"}},
		{name: "one that PATH finds, without execute permission", argv: []string{"text"}, want: outcome{fault: unix.EACCES}},
		{name: "a folder", argv: []string{"./bin"}, want: outcome{status: 127, fault: unix.EACCES}},
		{name: "a folder that is not there", argv: []string{"/bin/true"}, dir: "/none", want: outcome{status: 127, fault: unix.ENOENT, folder: true}},
		{name: "no folder", argv: []string{"/bin/true"}, dir: "/etc/passwd", want: outcome{status: 127, fault: unix.ENOTDIR, folder: true}},
		{name: "too much", argv: []string{"/bin/true", strings.Repeat("x", 3<<20)}, want: outcome{status: 127, fault: unix.E2BIG}},
		{
			name: "limits", argv: []string{"/bin/sh", "-c", "ulimit -n; ulimit -f"},
			with: func(c *wire.Command) { c.OpenFiles, c.FileSize = 77, 512*9 }, want: outcome{output: "77\n9\n"},
		},
		{
			name: "signals are as usual", argv: []string{"/bin/sh", "-c", `while read name mask; do case $name in SigBlk:|SigIgn:) echo $name$mask; esac; done </proc/$$/status`},
			want: outcome{output: "SigBlk:0000000000000000\nSigIgn:0000000000000000\n"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &wire.Command{Argv: tt.argv, Dir: dir, Env: []string{"PATH=/none:bin:" + dir + ":/usr/bin:/bin"}}
			if tt.dir != "" {
				c.Dir = tt.dir
			}
			if tt.with != nil {
				tt.with(c)
			}
			if got := spawned(t, c, none, nil); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestAProcessWaitsAtItsGate(t *testing.T) {
	c := &wire.Command{Argv: []string{"/bin/echo", "through"}, Dir: "/"}
	theirs, ours := pipe(t)
	open := func() { _, _ = ours.Write([]byte{opened}) }
	if got, want := spawned(t, c, int(theirs.Fd()), open), (outcome{output: "through\n"}); got != want {
		t.Errorf("opened: %+v, want %+v", got, want)
	}
	theirs, ours = pipe(t)
	_ = ours.Close() // now: the process would have a copy
	if got, want := spawned(t, c, int(theirs.Fd()), nil), (outcome{status: 127}); got != want {
		t.Errorf("closed: %+v, want %+v", got, want)
	}
}
