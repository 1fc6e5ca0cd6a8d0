package postgres

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// TestWakesAreHeardAfterAFailover leaves the connection that listens open to the old
// primary, which sends no more notifications.
func TestWakesAreHeardAfterAFailover(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) == "" {
		t.Skip("there is no Postgres; 'make test' starts one")
	}
	primary, err := pgserver.StartDurable(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Stop() })
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	address, err := pgserver.NewSwitch(t.Context(), primary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = address.Close() })
	s, err := Open(t.Context(), address.URL("postgres"), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	wakes, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	address.To(standby)
	there, err := pgx.Connect(t.Context(), standby.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close(context.WithoutCancel(t.Context())) })
	want := store.Wake{Key: store.Key{Tenant: "acme", Session: "s"}, Kind: store.WakeInbox}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(4 * checkEvery); time.Now().Before(end); {
		select {
		case got := <-wakes:
			if got == want {
				return
			}
		case <-tick.C:
			if _, err := there.Exec(t.Context(), "select pg_notify($1, $2)", channel, encode([]store.Wake{want})); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Error("no wake of the new primary is heard")
}
