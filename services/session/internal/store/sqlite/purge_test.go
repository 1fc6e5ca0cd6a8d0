package sqlite

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// TestADeletionLeavesNoTableOfSessionsOut fails for a new table until its rows are
// deleted with their session, or the table is in this list.
func TestADeletionLeavesNoTableOfSessionsOut(t *testing.T) {
	kept := []string{"tombstones", "places"} // until the peers have confirmed, and for the epochs and generations to go on from
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	rows, err := s.db.R.QueryContext(t.Context(),
		"select m.name from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' and c.name = 'session'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		found = append(found, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	want := slices.Sorted(slices.Values(slices.Concat(tables.OfSession, kept)))
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("tables with sessions (-deleted or kept +there are):\n%s", d)
	}
}
