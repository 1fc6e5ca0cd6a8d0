package sqlite_test

import (
	"database/sql"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// A replica of an older version does not know why a workspace left its place, and neither writes
// that nor takes it away.
func TestWhyAWorkspaceLeftIsOfItsOwnPlaceBesideAnOlderReplica(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	k := store.Key{Tenant: "acme", Session: "s1"}
	if _, err := s.PlaceNew(t.Context(), k, store.Place{Node: "a", Generation: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const older = `insert into places (tenant, session, node, generation, restoring) values ('acme', 's1', ?, ?, ?)
		on conflict do update set node = excluded.node, generation = excluded.generation, restoring = excluded.restoring`
	for _, step := range []struct {
		query string
		args  []any
	}{
		{older, []any{"b", 2, true}},
		{`update places set left_node = 'a', left_why = 'lost', left_for = 2`, nil}, // as this version does
		{older, []any{"b", 2, false}},
		{older, []any{"c", 3, true}}, // b is drained
	} {
		if _, err := db.ExecContext(t.Context(), step.query, step.args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if p, _, err := open(t, path).PlaceOf(t.Context(), k); err != nil || p.Left.Lost() || p.Generation != 3 || !p.Restore {
		t.Errorf("a planned move is taken for a loss: %+v, %v", p, err)
	}
}
