package sqlite_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

func TestASecondServerIsRefused(t *testing.T) {
	path := newPath(t)
	first := open(t, path)
	second, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("opened twice", second.Close())
	}
	for _, want := range []string{path, "in use by another process"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Errorf("the first server was harmed: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestMigrationsGoUpDownUp(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "session.db")) // there is nothing in it
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a temporary file
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sqlite.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	tables := func() (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(),
			"select count(*) from sqlite_master where type = 'table' and name not like 'goose%' and name not like 'sqlite%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := tables()
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := tables(); made == 0 || n != 0 {
		t.Errorf("%d tables up, %d tables down", made, n)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}
