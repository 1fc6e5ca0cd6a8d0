package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
)

// TestStatementsAreUsedAgain runs one statement many times: inside its own rows, after a refusal, after the end of
// its context, and among more statements than are kept.
func TestStatementsAreUsedAgain(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	exec := func(query string, args ...any) error {
		_, err := db.W.ExecContext(t.Context(), query, args...)
		return err
	}
	if err := exec("create table a (n integer primary key)"); err != nil {
		t.Fatal(err)
	}
	const insert = "insert into a values (?)"
	for n := range 3 {
		if err := exec(insert, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := exec(insert, 1); err == nil {
		t.Error("a key was taken twice")
	}
	if err := exec(insert, 3); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.W.ExecContext(ended, insert, 4); err == nil {
		t.Error("a statement ran although its context had ended")
	}
	if got, want := pairs(t, db), "00 01 02 03 10 11 12 13 20 21 22 23 30 31 32 33 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for n := range 1000 {
		var got int
		if err := db.R.QueryRowContext(t.Context(), fmt.Sprintf("select n + %d from a where n = 1", n)).Scan(&got); err != nil || got != n+1 {
			t.Fatalf("statement %d: %d, %v", n, got, err)
		}
	}
}

// pairs reads the table inside the rows of the same statement.
func pairs(t *testing.T, db *sqlite.DB) (all string) {
	t.Helper()
	tx, err := db.R.BeginTx(t.Context(), nil) // one connection for all
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	each := func(do func(n int)) {
		rows, err := tx.QueryContext(t.Context(), "select n from a order by n")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
			do(n)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	each(func(a int) { each(func(b int) { all += fmt.Sprintf("%d%d ", a, b) }) })
	return all
}
