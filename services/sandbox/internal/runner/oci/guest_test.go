package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/remote"
)

// openMaker makes a maker as New does. It must be closed.
func openMaker(t *testing.T, o Options) *maker {
	t.Helper()
	m := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup, patience: 10 * time.Second}
	if err := m.begin(t.Context(), o); err != nil {
		t.Fatal(errors.Join(err, m.Close()))
	}
	m.groups = o.Groups
	return m
}

// needRunsc skips a test where gVisor is not on the path.
func needRunsc(t *testing.T) {
	t.Helper()
	needRuntime(t)
	if _, err := exec.LookPath("runsc"); err != nil {
		t.Skip(err)
	}
}

// pretend makes a runtime that says that it is runsc, and otherwise is a script.
func pretend(t *testing.T, script string) Options {
	t.Helper()
	needRuntime(t)
	o := options(t)
	o.Runtime = filepath.Join(t.TempDir(), "runsc")
	text := "#!/bin/bash\n[[ $1 = --version ]] && echo runsc version pretended && exit\nfor word; do case $word in create|start|delete) what=$word;; esac; done\n" + script
	if err := os.WriteFile(o.Runtime, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return o
}

// make1 is Make of a small sandbox.
func (m *maker) make1(ctx context.Context, t *testing.T) (pool.Body, error) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { _ = errors.Join(ours.Close(), theirs.Close()) })
	return m.Make(ctx, pool.Build{Name: "one", Socket: theirs, Errors: os.Stderr, Spec: box.Sandbox{
		ID: "one", Owner: box.Owner{UID: 200777, GID: 200777}, Workspace: t.TempDir(), Home: t.TempDir(),
		Limits: box.Limits{MemoryBytes: 1 << 30, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20},
	}})
}

// TestWhatACrashLeftOfAKernelIsEnded has the runtime know more or less of a container.
func TestWhatACrashLeftOfAKernelIsEnded(t *testing.T) {
	needRunsc(t)
	for name, damage := range map[string]func(state string) error{
		"known to the runtime": func(string) error { return nil },
		"not known to it":      os.Remove,
		"half known to it":     func(state string) error { return os.Truncate(state, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Runtime = "runsc"
			crashed := openMaker(t, o)
			b, err := crashed.make1(t.Context(), t)
			if err != nil {
				t.Fatal(err)
			}
			left := crashed.processes("one")
			if !slices.Contains(left, b.(*guest).pid) || len(left) < 2 {
				t.Errorf("its processes are %v, with %d among them", left, b.(*guest).pid)
			}
			states, err := filepath.Glob(crashed.containers() + "/*.state")
			if err != nil || len(states) != 1 {
				t.Fatal(states, err)
			}
			if err := errors.Join(damage(states[0]), crashed.lock.Close()); err != nil { // the kernel unlocks
				t.Fatal(err)
			}
			crashed.lock = nil
			next := openMaker(t, o)
			if left := next.processes("one"); len(left) > 0 {
				t.Errorf("%v still run", left)
			}
			for _, dir := range []string{next.containers(), next.bundle("")} {
				if left, err := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("%s has %v, %v", dir, left, err)
				}
			}
			_ = b.Wait() // what is left of it here
			if err := errors.Join(crashed.Close(), next.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAllThatWorksForAKernelIsInItsControlGroup(t *testing.T) {
	needRunsc(t)
	o := options(t)
	o.Runtime, o.Groups = "runsc", groups(t)
	m := openMaker(t, o)
	b, err := m.make1(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	in, all := b.(*guest).group.Pids(), m.processes("one")
	for _, pid := range all {
		if !slices.Contains(in, pid) {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			t.Errorf("process %d (%s, %v) is not", pid, strings.TrimSpace(string(raw)), err)
		}
	}
	if len(all) < 2 { // who opens files is another one
		t.Errorf("its processes are %v", all)
	}
	b.Kill()
	if err := errors.Join(b.Wait(), m.Close()); err != nil {
		t.Error(err)
	}
}

// crashState has this test binary be a service that makes a container until it is killed.
const crashState = "FAIRLEAD_TEST_CRASH_STATE"

// TestMakeUntilKilled is the service that TestARuntimeEndsWithTheService kills.
func TestMakeUntilKilled(t *testing.T) {
	state := os.Getenv(crashState)
	if state == "" {
		t.Skip("runs in a process of its own")
	}
	_, err := openMaker(t, Options{State: state, Setup: 200999, Runtime: os.Getenv("RUNTIME")}).make1(t.Context(), t)
	t.Error("it was not killed", err)
}

// TestARuntimeEndsWithTheService has a service end while the runtime makes a container, which
// the next one would not find.
func TestARuntimeEndsWithTheService(t *testing.T) {
	o := pretend(t, `[[ $what = create ]] && mkfifo "$0.never" && echo > "$0.creates" && read <> "$0.never"`)
	service := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestMakeUntilKilled$")
	service.Env = append(os.Environ(), crashState+"="+o.State, "RUNTIME="+o.Runtime)
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	await := func(what string, done func() bool) {
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for !done() {
			select {
			case <-ctx.Done():
				t.Fatal(what)
			case <-look.C:
			}
		}
	}
	await("it makes nothing", func() bool { return os.Remove(o.Runtime+".creates") == nil })
	m := &maker{state: o.State, setup: o.Setup, patience: time.Second}
	if all := m.processes("one"); len(all) != 1 {
		t.Errorf("the runtime's processes are %v", all)
	}
	_ = service.Process.Kill()
	_ = service.Wait() // it was killed
	defer func() { _ = m.end("one") }()
	await("the runtime goes on", func() bool { return len(m.processes("one")) == 0 })
}

// TestAStrangersProcessIsLeftAlone has the runtime name a process that is no container's.
func TestAStrangersProcessIsLeftAlone(t *testing.T) {
	needRuntime(t) // before anything starts that has to be waited for
	stranger := exec.CommandContext(t.Context(), "sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	o := pretend(t, fmt.Sprintf(`while [[ $what = create && $# -gt 0 ]]; do [[ $1 = --pid-file ]] && echo %d > "$2"; shift; done; true`, stranger.Process.Pid))
	m := openMaker(t, o)
	if _, err := m.make1(t.Context(), t); err == nil || !strings.Contains(err.Error(), "not a container's kernel") {
		t.Errorf("it is made: %v", err)
	}
	if err := errors.Join(stranger.Process.Signal(unix.SIGTERM), m.Close()); err != nil {
		t.Error(err)
	}
	if err := stranger.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended before: %v", err)
	}
}

// TestARuntimeThatLeavesSomethingBehindIsNotWaitedFor has it leave a process that holds its output.
func TestARuntimeThatLeavesSomethingBehindIsNotWaitedFor(t *testing.T) {
	o := pretend(t, `[[ $what = delete ]] && { sleep 60 & echo $! > "$0.left"; }; exit 0`)
	m := openMaker(t, o)
	began := time.Now()
	err := m.remove(t.Context(), "one")
	if took := time.Since(began); took > 30*time.Second || !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("it takes %v: %v", took, err)
	}
	raw, err := os.ReadFile(o.Runtime + ".left")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(exec.CommandContext(t.Context(), "kill", strings.TrimSpace(string(raw))).Run(), m.Close()); err != nil {
		t.Error(err)
	}
}

// TestAKernelEndsThoughTheRuntimeFails has a process of a container that the runtime does not end.
func TestAKernelEndsThoughTheRuntimeFails(t *testing.T) {
	o := pretend(t, "[[ $what = delete ]] && echo no such thing && exit 1; exit 0")
	m := openMaker(t, o)
	m.patience = 5 * time.Second
	left := exec.CommandContext(t.Context(), "bash", "-c", "read", "kernel", "--bundle="+m.bundle("one"))
	in, err := left.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.remove(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("the runtime's fault is not told: %v", err)
	}
	_ = in.Close() // or it goes on
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it is not ended: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestAKernelThatDoesNotEndIsNotWaitedForForever has another process hold init's output.
func TestAKernelThatDoesNotEndIsNotWaitedForForever(t *testing.T) {
	o := pretend(t, "exit 0")
	m := openMaker(t, o)
	m.patience = 10 * time.Millisecond
	g := &guest{m: m, name: "one", kernel: -1, ended: make(chan struct{})}
	hears, says, err := g.open()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	service, init := os.NewFile(uintptr(pair[0]), "service"), os.NewFile(uintptr(pair[1]), "init")
	if g.link, err = remote.Join(init, g.pipes[0], g.pipes[1]); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = g.link.Run(g.Kill)
		close(g.ended)
	}()
	waited := make(chan error, 1)
	go func() { waited <- g.Wait() }()
	select {
	case err := <-waited:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it is waited for")
		_ = says.Close()
		_ = <-waited //nolint:staticcheck // only the end matters
	}
	g.link.Wait()
	for _, c := range []io.Closer{hears, says, service, init, m} {
		_ = c.Close()
	}
}

// TestMemoryOfAKernelThatIsUsedUpIsTold has processes want more together than the kernel may
// have, none of which wants too much by itself.
func TestMemoryOfAKernelThatIsUsedUpIsTold(t *testing.T) {
	needRunsc(t)
	o := options(t)
	o.Runtime, o.Groups = "runsc", groups(t)
	r := newRunner(t, o)
	s := box.Sandbox{
		ID: "greedy", Owner: box.Owner{UID: 200777, GID: 200777}, Workspace: t.TempDir(), Home: t.TempDir(),
		Limits: box.Limits{MemoryBytes: 256 << 20, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20},
	}
	run := func(script string) box.Exit {
		p, err := r.Start(t.Context(), box.Command{Sandbox: s, Limits: s.Limits, Dir: "/", Argv: []string{"bash", "-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range []io.ReadCloser{p.Stdout(), p.Stderr()} {
			_, _ = io.Copy(io.Discard, out)
			_ = out.Close()
		}
		return p.Wait()
	}
	if e := run("for i in 1 2 3 4 5 6 7 8; do head -c 120M /dev/zero | tail -c 120M | (sleep 20; wc -c) & done 2>/dev/null; wait -n; kill 0"); !e.OOMKilled {
		t.Errorf("%+v", e)
	}
	if e := run("true"); e.OOMKilled || e.Lost || e.Status != 0 { // it is not the next one's
		t.Errorf("the next command: %+v", e)
	}
}
