package pgserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), dir)
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func TestServerComesAndGoes(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "pgt") // t.TempDir is closed to the user that the server runs as, and its path is long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := start(t, dir)
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := conn.QueryRow(t.Context(), "show listen_addresses").Scan(&got); err != nil || got != "" {
		t.Errorf("listens on %q, %v", got, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := pgx.Connect(t.Context(), s.URL()); err == nil {
		t.Error("the server still answers")
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION")); err != nil {
		t.Errorf("a directory that was given is not to be removed: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	start(t, "") // skips without Postgres
	t.Run("a path too long for a socket", func(t *testing.T) {
		_, err := pgserver.Start(t.Context(), filepath.Join("/tmp", strings.Repeat("x", 100)))
		if err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a directory that is not empty", func(t *testing.T) {
		dir, err := os.MkdirTemp("/tmp", "pgt")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.MkdirAll(filepath.Join(dir, "data", "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := pgserver.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("got %v", err)
		}
	})
}

func TestADurableServerKeepsWhatItCommittedOverACrash(t *testing.T) {
	s, err := pgserver.StartDurable(t.Context(), "", "max_wal_size=2GB")
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	query := func(sql string) (answer string) {
		conn, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_wal_size": "2GB"} {
		if got := query("show " + setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	query("with made as (select lo_create(4242)) select 'yes' from made")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT} {
		if err := s.Crash(signal); err != nil {
			t.Fatal(err)
		}
		if conn, err := pgx.Connect(t.Context(), s.URL()); err == nil {
			_ = conn.Close(t.Context())
			t.Errorf("the server answers after %v", signal)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := query("select 'yes' from pg_largeobject_metadata where oid = 4242"); got != "yes" {
			t.Errorf("after %v the row says %q", signal, got)
		}
	}
}
