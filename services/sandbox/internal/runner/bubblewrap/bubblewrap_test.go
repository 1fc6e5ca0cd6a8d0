package bubblewrap

import (
	"bytes"
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

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// otherUser is who commands run as when the test is root's.
var otherUser = box.Owner{UID: 200777, GID: 200777}

// newRunner makes a runner that is closed with the test.
func newRunner(t *testing.T, o Options) box.Runner {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestConformsWithControlGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	runnertest.Run(t, runnertest.Subject{
		Owner: otherUser,
		Has:   runnertest.Features{Isolated: true, Written: true, Groups: true, LocalInit: true, Mounts: true, Mapped: true, Network: true},
		New: func(t *testing.T, o runnertest.Options) box.Runner {
			h, err := cgroup.Open(cgroup.Root, fmt.Sprintf("fairlead-test/%d-%d", os.Getpid(), time.Now().UnixNano()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			return newRunner(t, Options{Groups: h, OtherUsers: true, Max: o.Max, Idle: o.Idle, Network: o.Network})
		},
	})
}

func TestConformsWithoutControlGroups(t *testing.T) {
	s := runnertest.Subject{Owner: box.Self, Has: runnertest.Features{Isolated: true, Written: true, LocalInit: true, Mounts: true, Mapped: true, Network: true}}
	root := os.Getuid() == 0
	if root {
		s.Owner = otherUser
	}
	s.New = func(t *testing.T, o runnertest.Options) box.Runner {
		return newRunner(t, Options{OtherUsers: root, Max: o.Max, Idle: o.Idle, Network: o.Network})
	}
	runnertest.Run(t, s)
}

// That is all there is to say of a sandbox that ended before it was complete: nothing is wrong with what is left of it.
func TestAProgramThatIsNoInitIsRefused(t *testing.T) {
	owners := []box.Owner{box.Self}
	if os.Getuid() == 0 {
		owners = append(owners, otherUser)
	}
	for _, owner := range owners {
		var faults bytes.Buffer
		r, err := New(t.Context(), Options{
			Init: "/bin/true", OtherUsers: owner != box.Self,
			Log: slog.New(slog.NewTextHandler(&faults, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		if err != nil {
			t.Fatal(err)
		}
		spec := small(t)
		spec.Owner = owner
		_, err = r.Start(t.Context(), box.Command{Argv: []string{"true"}, Dir: "/", Limits: spec.Limits, Sandbox: spec})
		if err == nil || !strings.Contains(err.Error(), "could not be completed") || strings.Contains(err.Error(), "namespace") {
			t.Errorf("%v", err)
		}
		if err := r.Close(); err != nil || faults.Len() > 0 {
			t.Errorf("%v; it is told as a fault: %s", err, faults.String())
		}
	}
}

// small is a sandbox for a workspace, of the service's own user.
func small(t *testing.T) box.Sandbox {
	l := box.Limits{MemoryBytes: 1 << 30, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20}
	return box.Sandbox{ID: "test", Owner: box.Self, Limits: l, Workspace: t.TempDir(), Home: t.TempDir()}
}

// TestBubblewrapIsNotKept makes a sandbox: what made it takes no memory while it lasts.
func TestBubblewrapIsNotKept(t *testing.T) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	r := newRunner(t, Options{Name: name})
	spec := small(t)
	if err := r.Warm(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	look, patience := time.NewTicker(5*time.Millisecond), time.NewTimer(10*time.Second)
	defer look.Stop()
	defer patience.Stop()
	for processes(t, "bwrap-"+name) > 0 {
		select {
		case <-look.C:
		case <-patience.C:
			t.Fatal("bubblewrap is still there")
		}
	}
	if n := processes(t, "/proc/self/fd/", initName("bwrap-"+name)); n != 1 {
		t.Errorf("%d first processes", n)
	}
	p, err := r.Start(t.Context(), box.Command{Argv: []string{"true"}, Dir: "/", Limits: spec.Limits, Sandbox: spec})
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Wait(); e.Status != 0 || e.Lost || e.NotStarted != "" {
		t.Errorf("%+v", e)
	}
}

// processes counts those whose command line begins with some words.
func processes(t *testing.T, words ...string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		raw, err := os.ReadFile(f)
		has := strings.Split(string(raw), "\x00")
		begins := err == nil && len(has) > len(words)
		for i := 0; begins && i < len(words); i++ {
			begins = strings.HasPrefix(has[i], words[i])
		}
		if begins {
			n++
		}
	}
	return n
}

// TestAContainersFirstProcessIsLeftNoChild is a service to which the kernel gives what has
// lost its parent, as it does to a container's first process.
func TestAContainersFirstProcessIsLeftNoChild(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it needs root")
	}
	if os.Getpid() != 1 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", self, "-test.run=^"+t.Name()+"$")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r, spec := newRunner(t, Options{}), small(t)
	broken := newRunner(t, Options{Init: "/bin/false"})
	for range 20 { // now bubblewrap is the first to end, now init
		if err := r.Warm(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		r.Stop(spec.Workspace)
		if err := broken.Warm(t.Context(), spec); err == nil {
			t.Fatal("it is no init")
		}
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("process %d is left: %v", pid, err)
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
