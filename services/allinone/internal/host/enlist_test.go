package host

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// onDatabase is a server on a shared database, named by its data directory.
func onDatabase(t *testing.T, url config.Secret, name string) Config {
	t.Helper()
	c := sharing(t.TempDir())
	c.Session.DatabaseURL, c.Tools.DatabaseURL = url, url
	c.HTTP, c.GRPC, c.Sandbox.Node = "127.0.0.1:0", "", name
	c.Sandbox.Driver, c.Sandbox.NoIsolation = "none", true
	c.Session.Models.Model = "scripted:default"
	return c
}

// serve runs a server until ctx ends.
func serve(t *testing.T, ctx context.Context, c Config) (ended chan error) { //nolint:revive // the test comes first
	t.Helper()
	h, err := New(ctx, c, telemetry.Discard(slog.New(slog.DiscardHandler)), "test")
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- h.Run(ctx, nil) }()
	return ended
}

// listed returns the nodes that the database names.
func listed(t *testing.T, url config.Secret) []string {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	rows, err := db.Query(t.Context(), "select name from session.nodes order by name")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAServerThatDoesNotServeIsNoNode(t *testing.T) {
	url := config.Secret(pgtest.New(t))
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	failing := onDatabase(t, url, "failing")
	failing.HTTP = taken.Addr().String()
	h, err := New(t.Context(), failing, telemetry.Discard(slog.New(slog.DiscardHandler)), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context(), nil); err == nil {
		t.Error("it serves on a port that is taken")
	}
	if got := listed(t, url); len(got) > 0 {
		t.Errorf("a start that failed leaves %v", got)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := serve(t, ctx, onDatabase(t, url, "serving"))
	for got := listed(t, url); !slices.Equal(got, []string{"serving"}); got = listed(t, url) {
		if len(got) > 0 || len(ended) > 0 {
			t.Fatalf("the nodes are %v", got)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := listed(t, url); len(got) > 0 {
		t.Errorf("a server without workspaces leaves %v", got)
	}
}
