package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Salvage implements store.Store.
func (s *Store) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	var out *store.Salvage
	err := s.read(ctx, "read what is left of a session", func(tx pgx.Tx) error {
		row, err := held(ctx, tx, l, "")
		if err != nil {
			return err
		}
		out = &store.Salvage{LastSeq: row.LastSeq}
		if out.Turns, err = collect(ctx, tx, func(r pgx.CollectableRow) (*sessionv1.Turn, error) {
			var id string
			var body []byte
			err := r.Scan(&id, &body)
			return backend.ReadableTurn(l.Session, id, body), err
		}, "select turn, body from turns where tenant = $1 and session = $2 and state = any ($3) order by number", l.Tenant, l.Session, backend.Open); err != nil {
			return err
		}
		if out.Commands, err = collect(ctx, tx, pgx.RowTo[int64], "select id from inbox where tenant = $1 and session = $2 order by id", l.Tenant, l.Session); err != nil {
			return err
		}
		if out.Pending, err = collect(ctx, tx, pgx.RowTo[string], "select call from pending_calls where tenant = $1 and session = $2 order by call", l.Tenant, l.Session); err != nil {
			return err
		}
		out.Reservations, err = collect(ctx, tx, pgx.RowTo[string], "select distinct id from reservations where tenant = $1 and session = $2 order by id", l.Tenant, l.Session)
		return err
	})
	return out, err
}
