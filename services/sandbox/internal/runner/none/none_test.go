package none_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/none"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConforms(t *testing.T) {
	runnertest.Run(t, runnertest.Subject{Owner: box.Self, New: func(t *testing.T, _ runnertest.Options) box.Runner {
		return newRunner(t, slog.New(slog.DiscardHandler))
	}})
}

func newRunner(t *testing.T, log *slog.Logger) *none.Runner {
	r, err := none.New(t.Context(), log)
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

func TestItSaysLoudlyThatThereIsNoIsolation(t *testing.T) {
	var log bytes.Buffer
	newRunner(t, slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "NO ISOLATION") {
		t.Errorf("it says %q", log.String())
	}
}

func TestRulesForANetworkAreNotIgnored(t *testing.T) {
	r := newRunner(t, slog.New(slog.DiscardHandler))
	_, err := r.Start(t.Context(), box.Command{Argv: []string{"true"}, Dir: "/", Sandbox: box.Sandbox{
		Workspace: t.TempDir(), Home: t.TempDir(), Network: "[]",
	}})
	if err == nil || !strings.Contains(err.Error(), "network") {
		t.Errorf("%v", err)
	}
}
