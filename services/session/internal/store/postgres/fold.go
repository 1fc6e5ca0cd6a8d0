package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// FoldEvents implements store.Store. The session's lock prevents a deletion, and
// the events' locks another fold; neither blocks a claim or a commit.
func (s *Store) FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error {
	rows, err := backend.PlanFold(k, first, last, events)
	if err != nil {
		return fail("fold events", err)
	}
	return s.write(ctx, "fold events", func(tx pgx.Tx) error {
		var one int
		if err := tx.QueryRow(ctx, "select 1 from sessions where tenant = $1 and session = $2 for key share", k.Tenant, k.Session).Scan(&one); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "select 1 from events where tenant = $1 and session = $2 and seq between $3 and $4 order by seq for update", k.Tenant, k.Session, first, last); err != nil {
			return err
		}
		old, err := collect(ctx, tx, func(r pgx.CollectableRow) (e backend.Event, err error) {
			return e, r.Scan(&e.FirstSeq, &e.Seq)
		}, "select first_seq, seq from events where tenant = $1 and session = $2 and seq between $3 and $4 order by seq", k.Tenant, k.Session, first, last)
		if err != nil {
			return err
		}
		if err := backend.Tile(old, first, last); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue("delete from events where tenant = $1 and session = $2 and seq between $3 and $4", k.Tenant, k.Session, first, last)
		queueEvents(b, rows)
		return tx.SendBatch(ctx, b).Close()
	})
}
