package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func migrations(upTo int) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, s := range []string{"create table a (id integer primary key, n integer not null)", "insert into a values (1, 0)", "create table b (a integer references a (id))"}[:upTo] {
		fs[fmt.Sprintf("0000%d_step.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + s + ";\n")}
	}
	return fs
}

func TestOpenSetsTheFileUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made by open", "a?b#c%41.db")
	db := open(t, path)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		if err := db.W.QueryRowContext(t.Context(), "pragma "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", pragma, got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info, err)
	}
}

func TestReadersDoNotWriteAndDoNotWait(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	if err := sqlite.Migrate(t.Context(), db, migrations(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.R.ExecContext(t.Context(), "update a set n = 9"); err == nil {
		t.Error("a reader wrote")
	}
	err := db.Tx(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(t.Context(), "update a set n = 5"); err != nil {
			return err
		}
		var n int
		if err := db.R.QueryRowContext(t.Context(), "select n from a").Scan(&n); err != nil || n != 0 {
			t.Errorf("a reader beside an open transaction: n = %d, %v", n, err)
		}
		return nil
	})
	var n int
	if scan := db.R.QueryRowContext(t.Context(), "select n from a").Scan(&n); err != nil || scan != nil || n != 5 {
		t.Errorf("after the commit: n = %d, %v, %v", n, err, scan)
	}
}

func TestWritersQueue(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	if err := sqlite.Migrate(t.Context(), db, migrations(2)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := db.Tx(t.Context(), increment(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var n int
	if err := db.R.QueryRowContext(t.Context(), "select n from a").Scan(&n); err != nil || n != 80 {
		t.Errorf("n = %d, %v", n, err)
	}
}

func increment(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "select n from a").Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update a set n = ?", n+1)
		return err
	}
}

func TestTxRollsBack(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	if err := sqlite.Migrate(t.Context(), db, migrations(2)); err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	err := db.Tx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "delete from a")
		return errors.Join(err, mine)
	})
	var n int
	if scan := db.R.QueryRowContext(t.Context(), "select count(*) from a").Scan(&n); !errors.Is(err, mine) || scan != nil || n != 1 {
		t.Errorf("n = %d, %v, %v", n, err, scan)
	}
}

func TestASecondServerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path)
	_, err := sqlite.Open(t.Context(), path)
	if !errors.Is(err, sqlite.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path)
	for _, steps := range []int{1, 3, 3} {
		if err := sqlite.Migrate(t.Context(), db, migrations(steps)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlite.Migrate(t.Context(), db, migrations(2)); !errors.Is(err, sqlite.ErrNewer) {
		t.Errorf("a newer file: %v", err)
	}
	if _, err := db.W.ExecContext(t.Context(), "insert into b values (99)"); err == nil {
		t.Error("a reference to nothing was taken")
	}
	fs := migrations(3)
	fs["00004_bad.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\ncreate table c (id integer);\nselect nonsense;\n")}
	if err := sqlite.Migrate(t.Context(), db, fs); err == nil || !strings.Contains(err.Error(), "version:4") {
		t.Errorf("a step that fails: %v", err)
	}
	if _, err := db.W.ExecContext(t.Context(), "select * from c"); err == nil {
		t.Error("half of a step stayed")
	}
}

func TestOpenRefusesWhatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, path) // The lock was given up.
}

func TestUnavailable(t *testing.T) {
	for name, err := range map[string]error{"nothing": nil, "another error": errors.New("x"), "no row": sql.ErrNoRows} {
		if sqlite.Unavailable(err) {
			t.Errorf("%s counts", name)
		}
	}
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path)
	if err := sqlite.Migrate(t.Context(), db, migrations(2)); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+path) // somebody who does not care for the lock file
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	err = db.Tx(t.Context(), func(*sql.Tx) error {
		_, err := other.ExecContext(t.Context(), "update a set n = 1")
		return err
	})
	if !sqlite.Unavailable(err) {
		t.Errorf("a file that is busy: %v", err)
	}
}

func TestAnUnsyncedTransactionLeavesTheNextOnesSynced(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	refused := errors.New("refused")
	level := func(tx *sql.Tx) (n int) {
		t.Helper()
		if err := tx.QueryRowContext(t.Context(), "pragma synchronous").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	const normal, full = 1, 2
	for _, c := range []struct {
		name string
		run  func(context.Context, func(*sql.Tx) error) error
		fail error
		want int
	}{
		{"unsynced", db.TxUnsynced, nil, normal},
		{"synced", db.Tx, nil, full},
		{"unsynced and refused", db.TxUnsynced, refused, normal},
		{"synced after a refusal", db.Tx, nil, full},
	} {
		got := 0
		err := c.run(t.Context(), func(tx *sql.Tx) error {
			got = level(tx)
			_, err := tx.ExecContext(t.Context(), "create table if not exists a (n integer)")
			return errors.Join(err, c.fail)
		})
		if !errors.Is(err, c.fail) || c.fail == nil && err != nil || got != c.want {
			t.Errorf("%s: level %d, want %d; %v", c.name, got, c.want, err)
		}
	}
	var tables int
	if err := db.R.QueryRowContext(t.Context(), "select count(*) from sqlite_schema where name = 'a'").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v", tables, err)
	}
}
