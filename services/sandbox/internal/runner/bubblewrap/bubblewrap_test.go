package bubblewrap

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

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
		Has:   runnertest.Features{Isolated: true, Groups: true, LocalInit: true, Mounts: true, Mapped: true, Network: true},
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
	s := runnertest.Subject{Owner: box.Self, Has: runnertest.Features{Isolated: true, LocalInit: true, Mounts: true, Mapped: true, Network: true}}
	root := os.Getuid() == 0
	if root {
		s.Owner = otherUser
	}
	s.New = func(t *testing.T, o runnertest.Options) box.Runner {
		return newRunner(t, Options{OtherUsers: root, Max: o.Max, Idle: o.Idle, Network: o.Network})
	}
	runnertest.Run(t, s)
}

func TestAProgramThatIsNoInitIsRefused(t *testing.T) {
	r := newRunner(t, Options{Init: "/bin/true"})
	l := box.Limits{MemoryBytes: 1 << 30, Processes: 64, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20}
	_, err := r.Start(t.Context(), box.Command{Argv: []string{"true"}, Dir: "/", Limits: l, Sandbox: box.Sandbox{
		ID: "test", Owner: box.Self, Limits: l, Workspace: t.TempDir(), Home: t.TempDir(),
	}})
	if err == nil || !strings.Contains(err.Error(), "could not be completed") {
		t.Errorf("%v", err)
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
