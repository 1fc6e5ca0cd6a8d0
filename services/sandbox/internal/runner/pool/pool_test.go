package pool_test

import (
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/bubblewrap"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRunner makes a runner, and a command that runs until it is killed.
func newRunner(t *testing.T) (*pool.Runner, box.Command) {
	t.Helper()
	r, err := bubblewrap.New(t.Context(), bubblewrap.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	l := box.Limits{MemoryBytes: 1 << 30, Processes: 64, CPUs: 2, FileBytes: 1 << 20, OpenFiles: 128, TmpBytes: 1 << 20, ShmBytes: 1 << 20}
	return r.Runner, box.Command{Argv: []string{"sleep", "600"}, Dir: "/", Limits: l, Sandbox: box.Sandbox{
		ID: "test", Owner: box.Self, Limits: l, Workspace: t.TempDir(), Home: t.TempDir(),
	}}
}

func TestAnInitThatSaysNonsenseIsNotBelieved(t *testing.T) {
	for _, packet := range []string{"nonsense", "\x13\x01\x00\x00\x00\x00\x00\x00\x00", "\x11\xff\x00\x00\x00\x00\x00\x00\x00"} {
		r, c := newRunner(t)
		p, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Hear(c.Sandbox.Workspace, []byte(packet)); err == nil {
			t.Errorf("%q was believed", packet)
		}
		p.Kill()
		p.Wait()
		_ = errors.Join(p.Stdout().Close(), p.Stderr().Close())
	}
}
