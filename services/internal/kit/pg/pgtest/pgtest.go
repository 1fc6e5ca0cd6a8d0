// Package pgtest gives a test a Postgres database of its own.
package pgtest

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// Env names the server: the URL of a database on it that is only connected to, never written to.
const Env = "TEST_DATABASE_URL"

const timeout = 30 * time.Second

// New returns the URL of an empty database that is dropped when the test ends. Without a server in the
// environment it skips the test, or fails it when CI is set, so that a skip is not mistaken for a pass.
func New(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not set; in CI the tests on Postgres must run ('make test' starts one)", Env)
		}
		t.Skipf("%s is not set; 'make test' starts a throw-away Postgres", Env)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", Env) // its error would show the password
	}
	name := "test_" + id.New()
	run(t, server, "create database "+name+" template template0") // template0 never has connections
	t.Cleanup(func() { run(t, server, "drop database if exists "+name+" with (force)") })
	u.Path = "/" + name
	return u.String()
}

func run(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect to the server of %s: %v", Env, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}
