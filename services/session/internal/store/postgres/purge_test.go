package postgres

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// TestADeletionLeavesNoTableOfSessionsOut fails for a new table until its rows are
// deleted with their session, or the table is in this list.
func TestADeletionLeavesNoTableOfSessionsOut(t *testing.T) {
	kept := []string{"tombstones", "places"} // until the peers have confirmed, and for the epochs and generations to go on from
	s, err := Open(t.Context(), pgtest.New(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	rows, err := s.db.pool.Query(t.Context(),
		"select table_name from information_schema.columns where table_schema = current_schema() and column_name = 'session'")
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	want := slices.Sorted(slices.Values(slices.Concat(tables.OfSession, kept)))
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("tables with sessions (-deleted or kept +there are):\n%s", d)
	}
}
