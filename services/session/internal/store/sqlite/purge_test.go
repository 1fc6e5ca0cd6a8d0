package sqlite

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestADeletionLeavesNoTableOfSessionsOut: whoever adds a table says whether its
// rows go with their session, or are kept as these are.
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
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(tables)
	want := slices.Sorted(slices.Values(slices.Concat(ofSession, kept)))
	if d := cmp.Diff(want, tables); d != "" {
		t.Errorf("tables with sessions (-deleted or kept +there are):\n%s", d)
	}
}
