package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRunner makes a runner; with groups as root, without otherwise.
func newRunner(t *testing.T, change ...func(*Options)) (*Runner, box.Owner) {
	t.Helper()
	o, owner := Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, box.Self
	if os.Getuid() == 0 {
		h, err := cgroup.Open(cgroup.Root, fmt.Sprintf("fairlead-test/%d-%d", os.Getpid(), time.Now().UnixNano()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		o.Groups, o.OtherUsers, owner = h, true, box.Owner{UID: 200777, GID: 200777}
	}
	for _, f := range change {
		f(&o)
	}
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, owner
}

func command(t *testing.T, owner box.Owner, argv ...string) box.Command {
	t.Helper()
	l := box.Limits{
		MemoryBytes: 1 << 30, Processes: 64, CPUs: 2, FileBytes: 1 << 20, OpenFiles: 128,
		TmpBytes: 1 << 20, ShmBytes: 1 << 20,
	}
	c := box.Command{Argv: argv, Dir: box.WorkspacePath, Limits: l, Sandbox: box.Sandbox{
		ID: "test", Owner: owner, Limits: l,
		Workspace: filepath.Join(t.TempDir(), "w"), Home: filepath.Join(t.TempDir(), "h"),
	}}
	for _, dir := range []string{c.Sandbox.Workspace, c.Sandbox.Home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if owner != box.Self {
			if err := os.Chown(dir, owner.UID, owner.GID); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// run runs a command to its end and returns what it wrote.
func run(t *testing.T, r *Runner, c box.Command) (string, box.Exit) {
	t.Helper()
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string, 2)
	go func() { b, _ := io.ReadAll(p.Stdout()); out <- string(b) }()
	go func() {
		if p.Stderr() == nil {
			out <- ""
			return
		}
		b, _ := io.ReadAll(p.Stderr())
		out <- string(b)
	}()
	exit := p.Wait()
	text := <-out + <-out
	_ = p.Stdout().Close()
	if p.Stderr() != nil {
		_ = p.Stderr().Close()
	}
	return text, exit
}

func TestRunsACommand(t *testing.T) {
	r, owner := newRunner(t)
	for _, tc := range []struct {
		name, script, want string
		status             int
	}{
		{"it sees the workspace as its own", "touch x; stat -c %u:%g x; pwd", "1000:1000\n/workspace\n", 0},
		{"its status is kept", "exit 7", "", 7},
		{"it inherits no descriptor", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", 0},
		{"it has no capability", "grep -h Cap /proc/self/status | tr -d '\\t' | sort -u | tr '\\n' ' '",
			"CapAmb:0000000000000000 CapBnd:0000000000000000 CapEff:0000000000000000 CapInh:0000000000000000 CapPrm:0000000000000000 ", 0},
		{"it is filtered", "grep -h ^Seccomp: /proc/self/status", "Seccomp:\t2\n", 0},
		{"its environment is clean", "env | sort | cut -d= -f1 | tr '\\n' ' '", "GOTOOLCHAIN HOME LANG LOGNAME PATH PWD SHELL SHLVL TERM TMPDIR USER _ ", 0},
		{"its streams open again by name", "echo hi > /dev/stderr; echo ho > /dev/stdout", "ho\nhi\n", 0},
		{"its open files are bounded", "ulimit -n", "128\n", 0},
		{"its home is writable", "cd; pwd; touch x && echo ok", "/home/agent\nok\n", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, exit := run(t, r, command(t, owner, "bash", "-c", tc.script))
			if out != tc.want && out != swap(tc.want) {
				t.Errorf("output %q, want %q", out, tc.want)
			}
			if exit.Lost || exit.Status != tc.status {
				t.Errorf("exit %+v, want status %d", exit, tc.status)
			}
		})
	}
}

// swap turns two lines round: which output is read first is not certain.
func swap(s string) string {
	lines := strings.SplitAfter(s, "\n")
	if len(lines) != 3 {
		return s
	}
	return lines[1] + lines[0]
}

func TestACommandThatCannotBeExecutedIsNotStarted(t *testing.T) {
	r, owner := newRunner(t)
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
		c := command(t, owner, tc.argv...)
		c.Dir = tc.dir
		_, err := r.Start(t.Context(), c)
		var cannot *box.StartError
		if !errors.As(err, &cannot) || cannot.Message != tc.want {
			t.Errorf("%.40v: %v, want %s", tc.argv, err, tc.want)
		}
	}
}

func TestATerminalIsTheCommandsOwn(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "bash", "-c", "tty >/dev/null && stty size && echo > /dev/tty && ps -o tty= -p $$ | wc -l")
	c.Terminal = &box.TerminalSize{Rows: 33, Columns: 99}
	out, exit := run(t, r, c)
	if !strings.HasPrefix(out, "33 99\r\n") || exit.Status != 0 {
		t.Errorf("output %q, exit %+v", out, exit)
	}
}

func TestASignalReachesTheCommand(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "bash", "-c", `trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.01; done`)
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), buffer); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(15); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(p.Stdout())
	_, _ = io.ReadAll(p.Stderr())
	if exit := p.Wait(); exit.Status != 9 || string(rest) != "caught\n" {
		t.Errorf("output %q, exit %+v", rest, exit)
	}
}

func TestACallerWhoGoesAwayDuringAStartEndsNothingThatRuns(t *testing.T) {
	r, owner := newRunner(t)
	if r.groups == nil {
		t.Skip("without control groups every command has a sandbox of its own")
	}
	c := command(t, owner, "cat")
	c.Stdin = true
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Argv, c.Stdin = []string{"true"}, false
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for tries := 0; ; tries++ { // a start may as well notice before it has asked for anything
		other, err := r.Start(ctx, c)
		if err == nil {
			_, _ = io.ReadAll(other.Stdout())
			_, _ = io.ReadAll(other.Stderr())
			other.Wait()
			break
		}
		if tries == 100 {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(p.Stdin(), "still here\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(p.Stdout())
	_, _ = io.ReadAll(p.Stderr())
	if exit := p.Wait(); string(out) != "still here\n" || exit.Status != 0 {
		t.Errorf("output %q, exit %+v", out, exit)
	}
}

func TestBackgroundChildrenEndWithTheCommand(t *testing.T) {
	r, owner := newRunner(t)
	started := time.Now()
	out, exit := run(t, r, command(t, owner, "bash", "-c", "sleep 300 & disown; setsid sleep 300 & echo done"))
	if out != "done\n" || exit.Status != 0 || time.Since(started) > 20*time.Second {
		t.Errorf("output %q, exit %+v after %v", out, exit, time.Since(started))
	}
}

func TestAnExtraPathMayNotHideTheSandboxsOwn(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"relative", "/", "/proc", "/workspace/x", "/home", "/dev/shm", "/a/../b", "/no/such/path"} {
		if _, err := newLayout([]string{path}, nil); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	o := Options{Log: slog.New(slog.DiscardHandler)}
	r, err := New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	dir := b.TempDir()
	l := box.Limits{MemoryBytes: 4 << 30, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20}
	c := box.Command{
		Argv: []string{"true"}, Dir: "/", Limits: l,
		Sandbox: box.Sandbox{ID: "bench", Owner: box.Self, Workspace: dir, Home: dir, Limits: l},
	}
	for b.Loop() {
		p, err := r.Start(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
		_, _ = p.Stdout().Close(), p.Stderr().Close()
	}
}
