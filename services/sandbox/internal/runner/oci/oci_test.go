package oci

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needRuntime skips a test where there is no runtime, but not in CI.
func needRuntime(t *testing.T) {
	t.Helper()
	prove.Only(t, "containers are not the default driver")
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	if _, err := find(""); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
}

func options(t *testing.T) Options {
	t.Helper()
	state, err := os.MkdirTemp("/tmp", "fairlead-oci-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	return Options{
		State: filepath.Join(state, "state"), CgroupParent: fmt.Sprintf("fairlead-test-oci-%d-%d", os.Getpid(), time.Now().UnixNano()), Setup: 200999,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func newRunner(t *testing.T, o Options) box.Runner {
	t.Helper()
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// begin does what New and Sweep do.
func (m *maker) begin(ctx context.Context, o Options) error {
	if err := m.open(ctx, o); err != nil {
		return err
	}
	return m.prepare(ctx)
}

func TestConformsWithControlGroups(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		runnertest.Run(t, runnertest.Subject{
			Owner: box.Owner{UID: 200777, GID: 200777},
			Has:   runnertest.Features{Isolated: true, Written: true, Groups: true, LocalInit: true, Mounts: true, Mapped: true, Network: true},
			New: func(t *testing.T, o runnertest.Options) box.Runner {
				x := options(t)
				x.Runtime, x.Groups, x.Max, x.Idle, x.Network = runtime, groups(t), o.Max, o.Idle, o.Network
				return newRunner(t, x)
			},
		})
	})
}

func TestConformsWithoutControlGroups(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		runnertest.Run(t, runnertest.Subject{
			Owner: box.Owner{UID: 200777, GID: 200777},
			Has:   runnertest.Features{Isolated: true, Written: true, LocalInit: true, Mounts: true, Mapped: true, Network: true},
			New: func(t *testing.T, o runnertest.Options) box.Runner {
				x := options(t)
				x.Runtime, x.Max, x.Idle, x.Network = runtime, o.Max, o.Idle, o.Network
				return newRunner(t, x)
			},
		})
	})
}

// eachRuntime runs a test with every runtime on the path that makes containers of this
// machine's processes. CI has the first.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime string)) {
	needRuntime(t)
	for _, name := range []string{"runc", "crun"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil && (name != "runc" || os.Getenv("CI") == "") {
				t.Skip(err)
			}
			if name == "crun" {
				name = runnertest.Crun("../../../../../deploy/crun")
			}
			test(t, name)
		})
	}
}

// Containers of gVisor's runsc have a kernel of their own: what the suite asks of control
// groups is about processes of this machine's.
func TestConformsWithAKernelOfItsOwn(t *testing.T) {
	needRuntime(t)
	if _, err := exec.LookPath("runsc"); err != nil {
		t.Skip(err)
	}
	for name, grouped := range map[string]bool{"with control groups": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			runnertest.Run(t, runnertest.Subject{
				Owner: box.Owner{UID: 200777, GID: 200777},
				Has:   runnertest.Features{Isolated: true, Mounts: true, Mapped: true, Network: true},
				New: func(t *testing.T, o runnertest.Options) box.Runner {
					x := options(t)
					x.Runtime, x.Max, x.Idle, x.Network = "runsc", o.Max, o.Idle, o.Network
					if grouped {
						x.Groups = groups(t)
					}
					return newRunner(t, x)
				},
			})
		})
	}
}

// groups are control groups of the test's own.
func groups(t *testing.T) cgroup.Hierarchy {
	t.Helper()
	h, err := cgroup.Open(cgroup.Root, fmt.Sprintf("fairlead-test/%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestARuntimeThatCannotBeUsed(t *testing.T) {
	for name, want := range map[string]string{
		"no-such-runtime": "oci.runtime",
	} {
		if _, err := find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFolderThatNobodyPassesThroughIsRefused(t *testing.T) {
	needRuntime(t)
	o := options(t)
	if err := os.Chmod(filepath.Dir(o.State), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "oci.state") {
		t.Errorf("%v", err)
	}
}

func TestWhatACrashLeftIsRemoved(t *testing.T) {
	needRuntime(t)
	o := options(t)
	crashed, next := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup}, &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup}
	if err := crashed.begin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = crashed.image.Close() }()
	left := makeOne(t, crashed)
	if err := next.begin(t.Context(), o); err == nil {
		t.Error("two services have one folder")
	}
	_ = next.image.Close()
	if err := crashed.lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	if err := next.begin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left.Init())); err == nil && !strings.Contains(string(raw), ") Z ") {
		t.Errorf("it still runs: %s", raw)
	}
	for _, dir := range []string{next.containers(), filepath.Join(o.State, "bundles")} {
		if left, err := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s has %v, %v", dir, left, err)
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	for _, root := range []string{cgroup.Root, cgroup.Root + "/*"} { // of either version
		if groups, err := filepath.Glob(filepath.Join(root, o.CgroupParent)); len(groups) > 0 || err != nil {
			t.Errorf("control groups are left: %v, %v", groups, err)
		}
	}
}

// Without what the runtime has noted it could not remove a container the next time.
func TestWhatCannotBeRemovedIsTheNextStarts(t *testing.T) {
	needRuntime(t)
	o := options(t)
	crashed := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup}
	if err := crashed.begin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	left := makeOne(t, crashed)
	if err := errors.Join(crashed.image.Close(), crashed.lock.Close()); err != nil { // as the kernel does
		t.Fatal(err)
	}
	broken := o
	broken.Runtime = filepath.Join(t.TempDir(), "runc")
	if err := os.WriteFile(broken.Runtime, []byte("#!/bin/sh\ntest \"$1\" = --version\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	next := &maker{state: o.State, parent: o.CgroupParent, setup: o.Setup}
	if err := next.begin(t.Context(), broken); err == nil {
		t.Error("a runtime that removes nothing has removed it")
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if err := Clear(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left.Init())); err == nil && !strings.Contains(string(raw), ") Z ") {
		t.Errorf("it still runs: %s", raw)
	}
	if _, err := os.Stat(o.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestNobodyElseIsWaitedFor has the number of an init that has ended be another process's.
func TestNobodyElseIsWaitedFor(t *testing.T) {
	other := exec.CommandContext(t.Context(), "true")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, other.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	b := &body{m: &maker{state: t.TempDir()}, name: "gone", init: other.Process.Pid}
	if err := b.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("it was waited for: %v", err)
	}
}

// makeOne makes a container that is not let go.
func makeOne(t *testing.T, m *maker) pool.Body {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { _ = errors.Join(ours.Close(), theirs.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := m.Make(ctx, pool.Build{Name: "left", Socket: theirs, Errors: os.Stderr, Spec: box.Sandbox{
		ID: "left", Owner: box.Owner{UID: 200777, GID: 200777}, Workspace: t.TempDir(), Home: t.TempDir(),
		Limits: box.Limits{MemoryBytes: 1 << 30, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
