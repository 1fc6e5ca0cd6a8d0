package integration

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/session"
)

// warned is a log that calls a function at the first warning.
type warned struct {
	slog.Handler
	first func()
}

func (w *warned) Enabled(context.Context, slog.Level) bool { return true }

func (w *warned) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.first()
	}
	return nil
}

func TestAStartWaitsForItsDatabaseUntilItIsStopped(t *testing.T) {
	t.Parallel()
	c := session.Defaults()
	c.DatabaseURL = "postgres://u@127.0.0.1:1/d" // no server listens there
	c.DatabaseWait = time.Hour
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	log := slog.New(&warned{Handler: slog.DiscardHandler, first: func() { cancel(stop) }})
	peers := rpctest.Dial(t, newPeers().register)
	if _, err := session.New(ctx, c, session.Deps{Sandbox: peers, Tools: peers, Log: log, Version: "test"}); !errors.Is(err, stop) {
		t.Errorf("the start ended with %v", err)
	}
}
