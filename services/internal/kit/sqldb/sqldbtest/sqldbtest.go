// Package sqldbtest has the suite of every database of sqldb.
package sqldbtest

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
)

// Table makes the table of the suite; instant and blob are the types of the database.
func Table(instant, blob string) string {
	return "create table things (name text primary key, at " + instant + " not null, until " + instant + ", body " + blob + ", done boolean not null default false)"
}

// Run checks a database. write runs f in a transaction; the table of Table is there and empty.
func Run(t *testing.T, write func(ctx context.Context, f func(sqldb.Tx) error) error) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, tx sqldb.Tx)
	}{
		{"times keep their microseconds and may be missing", times},
		{"a statement counts the rows that it changes", counts},
		{"a query without a row", noRows},
		{"raw bytes are those of their row", raw},
		{"casts, locks and limits", dialect},
	} {
		t.Run(c.name, func(t *testing.T) {
			undo := errors.New("the test is over")
			if err := write(t.Context(), func(tx sqldb.Tx) error {
				c.test(t, tx)
				return undo
			}); !errors.Is(err, undo) {
				t.Error(err)
			}
		})
	}
}

func exec(t *testing.T, tx sqldb.Tx, want int64, query string, args ...any) {
	t.Helper()
	if n, err := tx.Exec(t.Context(), query, args...); err != nil || n != want {
		t.Fatalf("%s: %d rows, want %d: %v", query, n, want, err)
	}
}

const insert = "insert into things (name, at, until, body) values ($1, $2, $3, $4) on conflict do nothing"

func times(t *testing.T, tx sqldb.Tx) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.FixedZone("", 3600))
	exec(t, tx, 1, insert, "a", at, sqldb.Null(at.Add(time.Minute)), []byte{0})
	exec(t, tx, 1, insert, "b", at, sqldb.Null(time.Time{}), nil)
	for name, want := range map[string]bool{"a": true, "b": false} {
		got, until := time.Time{}, &time.Time{}
		err := tx.QueryRow(t.Context(), "select at, until from things where name = $1", name).Scan(&got, &until)
		if err != nil || got != at.UTC() || (until != nil) != want || want && *until != at.UTC().Add(time.Minute) {
			t.Errorf("%s: %v until %v: %v", name, got, until, err)
		}
	}
	now, err := tx.Now(t.Context())
	if err != nil || now != now.UTC().Truncate(time.Microsecond) || time.Since(now).Abs() > time.Hour {
		t.Errorf("now is %v: %v", now, err)
	}
}

func counts(t *testing.T, tx sqldb.Tx) {
	now := time.Now()
	n, err := tx.Send(t.Context(), sqldb.S(insert, "a", now, nil, nil), sqldb.S(insert, "a", now, nil, nil),
		sqldb.S(insert, "b", now, nil, nil), sqldb.S("update things set done = true where not done"))
	if want := []int64{1, 0, 1, 2}; err != nil || !slices.Equal(n, want) {
		t.Errorf("changed %v, want %v: %v", n, want, err)
	}
}

func noRows(t *testing.T, tx sqldb.Tx) {
	if v, err := sqldb.Value[bool](tx.QueryRow(t.Context(), "select done from things where name = $1", "a")); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("%v, %v", v, err)
	}
	if all, err := sqldb.Collect(t.Context(), tx, sqldb.Value[string], "select name from things"); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func raw(t *testing.T, tx sqldb.Tx) {
	for _, name := range []string{"a", "b", "c"} {
		exec(t, tx, 1, insert, name, time.Now(), nil, []byte(name+name))
	}
	var got string
	var body sqldb.Raw
	if err := tx.Query(t.Context(), func(r sqldb.Row) error {
		err := r.Scan(&body)
		got += string(body)
		return err
	}, "select body from things order by name"); err != nil || got != "aabbcc" {
		t.Errorf("read %q: %v", got, err)
	}
}

func dialect(t *testing.T, tx sqldb.Tx) {
	if err := tx.Lock(t.Context(), "things"); err != nil {
		t.Fatal(err)
	}
	now, err := tx.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		exec(t, tx, 1, insert, name, now.Add(time.Duration(i-1)*time.Hour), nil, nil)
	}
	for _, c := range []struct {
		query string
		args  []any
		want  []string
	}{
		{"select name from things where at <= clock_timestamp() order by name for update", nil, []string{"a", "b"}},
		{"select name from things where at < clock_timestamp() - $1::interval", []any{30 * time.Minute}, []string{"a"}},
		{"select name from things where $1::bigint = 0 or name = $2 order by name limit $3 for no key update of things skip locked", []any{0, "", sqldb.Limit(0)}, []string{"a", "b", "c"}},
		{"select name from things where (at, name) > ($1, $2) order by at limit $3", []any{now.Add(-time.Hour), "a", sqldb.Limit(1)}, []string{"b"}},
	} {
		if got, err := sqldb.Collect(t.Context(), tx, sqldb.Value[string], c.query, c.args...); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v: %v", c.query, got, c.want, err)
		}
	}
	exec(t, tx, 1, "update things set at = greatest(at, $2) where name = $1", "a", now)
}
