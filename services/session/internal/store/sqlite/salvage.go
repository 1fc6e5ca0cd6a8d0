package sqlite

import (
	"context"
	"database/sql"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Salvage implements store.Store.
func (s *Store) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	var out *store.Salvage
	err := s.read(ctx, "read what is left of a session", func(tx *sql.Tx) error {
		row, err := held(ctx, tx, l)
		if err != nil {
			return err
		}
		out = &store.Salvage{LastSeq: row.LastSeq}
		if out.Turns, err = collect(ctx, tx, func(r *sql.Rows) (*sessionv1.Turn, error) {
			var id string
			var body []byte
			err := r.Scan(&id, &body)
			return backend.ReadableTurn(l.Session, id, body), err
		}, "select turn, body from turns where tenant = ? and session = ? and state in (?, ?, ?) order by number",
			l.Tenant, l.Session, backend.Open[0], backend.Open[1], backend.Open[2]); err != nil {
			return err
		}
		if out.Commands, err = collect(ctx, tx, func(r *sql.Rows) (id int64, err error) { return id, r.Scan(&id) },
			"select id from inbox where tenant = ? and session = ? order by id", l.Tenant, l.Session); err != nil {
			return err
		}
		text := func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) }
		if out.Pending, err = collect(ctx, tx, text,
			"select call from pending_calls where tenant = ? and session = ? order by call", l.Tenant, l.Session); err != nil {
			return err
		}
		out.Reservations, err = collect(ctx, tx, text,
			"select distinct id from reservations where tenant = ? and session = ? order by id", l.Tenant, l.Session)
		return err
	})
	return out, err
}
