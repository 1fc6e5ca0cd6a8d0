package bubblewrap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// only is the workspace's one sandbox.
func only(t *testing.T, r *Runner, c box.Command) *sandbox {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.warm[c.Sandbox.Workspace]
	if len(all) != 1 {
		t.Fatalf("%d sandboxes", len(all))
	}
	return all[0]
}

// with is the same workspace's next command.
func with(c box.Command, script string) box.Command {
	c.Argv = []string{"bash", "-c", script}
	return c
}

// launch starts a command that prints a line and waits for more to happen.
func launch(t *testing.T, r *Runner, c box.Command) box.Process {
	t.Helper()
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdout().Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait is Wait, with the streams closed.
func wait(p box.Process) box.Exit {
	e := p.Wait()
	_ = p.Stdout().Close()
	if p.Stderr() != nil {
		_ = p.Stderr().Close()
	}
	return e
}

func TestCommandsShareTheirSandbox(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "bash", "-c", "echo kept > /tmp/file")
	run(t, r, c)
	first := only(t, r, c)
	if out, _ := run(t, r, with(c, "cat /tmp/file")); out != "kept\n" {
		t.Errorf("the next command reads %q", out)
	}
	if only(t, r, c) != first {
		t.Error("another sandbox was made")
	}
}

func TestAnIdleSandboxEndsAndComesBack(t *testing.T) {
	r, owner := newRunner(t, func(o *Options) { o.Idle = 50 * time.Millisecond })
	c := command(t, owner, "bash", "-c", "echo gone > /tmp/file; echo kept > /workspace/file")
	run(t, r, c)
	r.mu.Lock()
	var first *sandbox
	for _, s := range r.warm[c.Sandbox.Workspace] {
		first = s
	}
	r.mu.Unlock()
	if first != nil { // else it has ended by now
		<-first.gone
	}
	if out, exit := run(t, r, with(c, "cat /workspace/file; ls /tmp")); out != "kept\n" || exit.Status != 0 {
		t.Errorf("afterwards: %q, %+v", out, exit)
	}
}

func TestAboveTheNumberTheLongestIdleOneMakesRoom(t *testing.T) {
	r, owner := newRunner(t, func(o *Options) { o.Max = 2 })
	a, b, c := command(t, owner, "true"), command(t, owner, "true"), command(t, owner, "true")
	run(t, r, a)
	run(t, r, b)
	first, second := only(t, r, a), only(t, r, b)
	run(t, r, c)
	<-first.gone
	if only(t, r, b) != second {
		t.Error("the other one ended")
	}
	busy := []box.Process{launch(t, r, with(b, "echo ready; sleep 600")), launch(t, r, with(c, "echo ready; sleep 600"))}
	if _, err := r.Start(t.Context(), a); !errors.Is(err, box.ErrTooManySandboxes) || !strings.Contains(err.Error(), "2 of 2") {
		t.Errorf("with all in use: %v", err)
	}
	for _, p := range busy {
		p.Kill()
		wait(p)
	}
	run(t, r, a)
}

func TestASandboxWhoseInitDiesIsReplaced(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "bash", "-c", "echo ready; setsid sleep 600 & sleep 600")
	p := launch(t, r, c)
	_ = unix.Kill(only(t, r, c).init, unix.SIGKILL)
	if e := wait(p); !e.Lost || e.OOMKilled {
		t.Errorf("it ended with %+v", e)
	}
	if out, e := run(t, r, with(c, "echo again")); out != "again\n" || e.Lost {
		t.Errorf("afterwards: %q, %+v", out, e)
	}
}

func TestASandboxWhoseInitHangsIsReplacedWhenItsCommandIsKilled(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "bash", "-c", "echo ready; sleep 600")
	p := launch(t, r, c)
	_ = unix.Kill(only(t, r, c).init, unix.SIGSTOP)
	p.Kill()
	if e := wait(p); !e.Lost {
		t.Errorf("it ended with %+v", e)
	}
	if out, e := run(t, r, with(c, "echo again")); out != "again\n" || e.Lost {
		t.Errorf("afterwards: %q, %+v", out, e)
	}
}

func TestAnInitThatSaysNonsenseIsNotBelieved(t *testing.T) {
	for _, packet := range []string{"nonsense", "\x13\x01\x00\x00\x00\x00\x00\x00\x00", "\x11\xff\x00\x00\x00\x00\x00\x00\x00"} {
		r, owner := newRunner(t)
		c := command(t, owner, "bash", "-c", "echo ready; sleep 600")
		p := launch(t, r, c)
		s := only(t, r, c)
		reply, err := wire.DecodeReply([]byte(packet))
		if err == nil {
			err = s.take(reply, &[]int{})
		}
		if err == nil {
			t.Errorf("%q was believed", packet)
		}
		p.Kill()
		wait(p)
	}
}

func TestAProgramThatIsNoInitIsRefused(t *testing.T) {
	r, owner := newRunner(t, func(o *Options) { o.Init = "/bin/true" })
	if _, err := r.Start(t.Context(), command(t, owner, "true")); err == nil || !strings.Contains(err.Error(), "could not be completed") {
		t.Errorf("%v", err)
	}
}

func TestCommandsSideBySideEndOneByOne(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	stays := launch(t, r, with(c, "echo ready; read; echo unharmed")) // without input, read ends at once
	_ = wait(stays)
	c.Stdin = true
	stays = launch(t, r, with(c, "echo ready; read; echo unharmed"))
	goes := launch(t, r, with(c, "setsid bash -c 'while :; do echo x >> /workspace/alive; sleep 0.01; done' & until [ -e /workspace/alive ]; do :; done; echo ready; read"))
	if _, err := goes.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if e := wait(goes); e.Status != 0 {
		t.Errorf("it ended with %+v", e)
	}
	size := func() int64 {
		st, err := os.Stat(filepath.Join(c.Sandbox.Workspace, "alive"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	before := size()
	c.Stdin = false
	run(t, r, with(c, "sleep 0.1"))
	if after := size(); after != before {
		t.Errorf("what it left still writes: %d bytes, then %d", before, after)
	}
	if _, err := stays.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(stays.Stdout())
	if e := wait(stays); string(out) != "unharmed\n" || e.Status != 0 {
		t.Errorf("the other one: %q, %+v", out, e)
	}
}

// TestTheFirstOfTwoLeavesNothing has the command without a group of its own end
// while another one runs.
func TestTheFirstOfTwoLeavesNothing(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	c.Stdin = true
	first := launch(t, r, with(c, "(while :; do echo x >> /workspace/alive; sleep 0.01; done) & until [ -e /workspace/alive ]; do :; done; echo ready; read"))
	second := launch(t, r, with(c, "echo ready; read; echo unharmed"))
	if _, err := first.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	wait(first)
	st, err := os.Stat(filepath.Join(c.Sandbox.Workspace, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin = false
	run(t, r, with(c, "sleep 0.1"))
	if after, err := os.Stat(filepath.Join(c.Sandbox.Workspace, "alive")); err != nil || after.Size() != st.Size() {
		t.Errorf("what it left still writes: %v, %v", after, err)
	}
	if _, err := second.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(second.Stdout())
	if e := wait(second); string(out) != "unharmed\n" || e.Status != 0 {
		t.Errorf("the other one: %q, %+v", out, e)
	}
}

func TestALimitOfItsOwnIsTheCommandsAlone(t *testing.T) {
	r, owner := newRunner(t)
	if owner == box.Self {
		t.Skip("memory of a whole command is bounded by control groups")
	}
	c := command(t, owner, "true")
	lower := with(c, `exec python3 -c "x = bytearray(200 << 20)"`)
	lower.Limits.MemoryBytes = 64 << 20
	if _, e := run(t, r, lower); !e.OOMKilled || e.Signal != 9 {
		t.Errorf("with less memory: %+v", e)
	}
	if out, e := run(t, r, with(c, `python3 -c "x = bytearray(200 << 20); print(len(x))"`)); e.OOMKilled || e.Status != 0 {
		t.Errorf("afterwards, with all: %q, %+v", out, e)
	}
}

func TestEndsAreToldApart(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	for script, want := range map[string]box.Exit{
		"exit 137":                      {Status: 137},
		"exit 255":                      {Status: 255},
		"kill -9 $$":                    {Signal: 9},
		"kill -TERM $$":                 {Signal: 15},
		"bash -c 'kill -9 $$'; exit $?": {Status: 137}, // the shell says so of its child
		"kill -STOP $$":                 {Signal: 9},   // by Kill, below
	} {
		p, err := r.Start(t.Context(), with(c, "ulimit -c 0; "+script))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(script, "STOP") {
			p.Kill()
		}
		if e := wait(p); e.Status != want.Status || e.Signal != want.Signal || e.Lost || e.OOMKilled {
			t.Errorf("%s: %+v", script, e)
		}
	}
}

func TestInitWithstandsItsCommands(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	run(t, r, c)
	first := only(t, r, c)
	for name, script := range map[string]string{
		"every signal, many times": `for i in $(seq 200); do for s in $(seq 64); do kill -$s 1 2>/dev/null; done; done; echo fine`,
		"its limits":               `prlimit --pid 1 --nofile=1:1 2>/dev/null && echo BROKEN; prlimit --pid 1 --cpu=1:1 2>/dev/null && echo BROKEN; echo fine`,
		"its memory and files":     `for f in mem environ fd fdinfo exe cwd root maps; do cat /proc/1/$f >/dev/null 2>&1 && echo BROKEN; ls /proc/1/$f/ >/dev/null 2>&1 && echo BROKEN; done; echo fine`,
		"orphans, many":            `for i in $(seq 300); do (setsid true &); done; echo fine`,
		"having it trace":          `exec python3 -c "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGCONT); os.kill(os.getpid(), signal.SIGURG); print('fine')"`,
		"its socket":               `exec 9<>/proc/1/fd/3 && echo BROKEN; echo fine`,
		"its priority":             `renice -n 19 -p 1 >/dev/null 2>&1; echo fine`,
	} {
		if out, e := run(t, r, with(c, "{ "+script+"; } 2>/dev/null")); out != "fine\n" || e.Status != 0 {
			t.Errorf("%s: %q, %+v", name, out, e)
		}
	}
	if only(t, r, c) != first {
		t.Error("the sandbox had to be made again")
	}
}

func TestAFrozenSandboxStandsStill(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	if frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace); frozen || err != nil {
		t.Errorf("without a sandbox: %v, %v", frozen, err)
	} else {
		thaw()
	}
	p := launch(t, r, with(c, "echo ready; while :; do echo x >> /workspace/alive; done"))
	frozen, thaw, err := r.Freeze(t.Context(), c.Sandbox.Workspace)
	if err != nil || frozen != (owner != box.Self) {
		t.Fatalf("%v, %v", frozen, err)
	}
	if frozen {
		for range 3 {
			before, _ := os.ReadFile(filepath.Join(c.Sandbox.Workspace, "alive"))
			_, _ = os.ReadDir("/proc") // some time
			if after, _ := os.ReadFile(filepath.Join(c.Sandbox.Workspace, "alive")); len(after) != len(before) {
				t.Errorf("it writes: %d, then %d bytes", len(before), len(after))
			}
		}
	}
	thaw()
	p.Kill()
	if e := wait(p); e.Signal != 9 {
		t.Errorf("afterwards: %+v", e)
	}
}

func TestASpareSandboxIsTakenOver(t *testing.T) {
	r, owner := newRunner(t, func(o *Options) { o.Idle, o.Max = time.Millisecond, 1 })
	c := command(t, owner, "true")
	spare := c.Sandbox
	spare.Spare = true
	if err := r.Warm(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	first := only(t, r, c)
	another := command(t, owner, "true").Sandbox
	another.Spare = true
	if err := r.Warm(t.Context(), another); !errors.Is(err, box.ErrTooManySandboxes) {
		t.Errorf("another spare one: %v", err)
	}
	r.mu.Lock()
	r.idle = 0 // it shall be there to look at
	r.mu.Unlock()
	c.Sandbox.ID, c.Sandbox.Workspace, c.Sandbox.Home = "taken", spare.Workspace+".taken", spare.Home+".taken"
	if err := errors.Join(os.Rename(spare.Workspace, c.Sandbox.Workspace), os.Rename(spare.Home, c.Sandbox.Home)); err != nil {
		t.Fatal(err)
	}
	r.Move(spare.Workspace, c.Sandbox)
	if out, e := run(t, r, with(c, "echo x > file; echo y > ~/file; pwd")); out != "/workspace\n" || e.Status != 0 {
		t.Errorf("%q, %+v", out, e)
	}
	if only(t, r, c) != first {
		t.Error("another sandbox was made")
	}
	for _, dir := range []string{c.Sandbox.Workspace, c.Sandbox.Home} {
		if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
			t.Error(err)
		}
	}
}

func TestASandboxOfOtherLimitsIsReplaced(t *testing.T) {
	r, owner := newRunner(t)
	c := command(t, owner, "true")
	run(t, r, c)
	first := only(t, r, c)
	c.Sandbox.Limits.TmpBytes *= 2
	run(t, r, c)
	<-first.gone
	second := only(t, r, c)
	run(t, r, c)
	if only(t, r, c) != second {
		t.Error("it was replaced again")
	}
}
