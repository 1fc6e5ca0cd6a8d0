package sqlite

import (
	"context"
	"database/sql"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// FoldEvents implements store.Store.
func (s *Store) FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error {
	rows, err := backend.PlanFold(k, first, last, events)
	if err != nil {
		return s.fail("fold events", err)
	}
	return s.write(ctx, "fold events", func(tx *sql.Tx) ([]store.Wake, error) {
		if err := sessionExists(ctx, tx, k); err != nil {
			return nil, err
		}
		old, err := collect(ctx, tx, func(r *sql.Rows) (e backend.Event, err error) {
			return e, r.Scan(&e.FirstSeq, &e.Seq)
		}, "select first_seq, seq from events where tenant = ? and session = ? and seq between ? and ? order by seq", k.Tenant, k.Session, first, last)
		if err != nil {
			return nil, err
		}
		if err := backend.Tile(old, first, last); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, "delete from events where tenant = ? and session = ? and seq between ? and ?", k.Tenant, k.Session, first, last); err != nil {
			return nil, err
		}
		return nil, insertEvents(ctx, tx, rows)
	})
}
