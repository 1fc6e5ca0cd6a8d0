package sqlite

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// placeOf reads a session's place, or returns sql.ErrNoRows.
func placeOf(ctx context.Context, q queryer, k store.Key) (store.Place, error) {
	var p store.Place
	var leftFor int64
	var at sql.NullInt64
	err := q.QueryRowContext(ctx, `select node, generation, restoring, made = generation, left_node, left_why, left_for, export_turn, export_seq, export_snapshot, export_time
		from places where tenant = ? and session = ?`, k.Tenant, k.Session).
		Scan(&p.Node, &p.Generation, &p.Restore, &p.Made, &p.Left.Node, &p.Left.Why, &leftFor, &p.Export.Turn, &p.Export.Seq, &p.Export.Snapshot, &at)
	if at.Valid {
		p.Export.Time = fromMicros(at.Int64)
	}
	p.Left = backend.LeftFor(p, leftFor)
	return p, err
}

// PlaceOf implements store.Places.
func (s *Store) PlaceOf(ctx context.Context, k store.Key) (p store.Place, epoch int64, err error) {
	err = s.read(ctx, "read a place", func(tx *sql.Tx) (err error) {
		err = tx.QueryRowContext(ctx, "select coalesce(max(epoch), 0) from sessions where tenant = ? and session = ?", k.Tenant, k.Session).Scan(&epoch)
		if err != nil {
			return err
		}
		p, err = placeOf(ctx, tx, k)
		return err
	})
	return p, epoch, err
}

// PlaceNew implements store.Places.
func (s *Store) PlaceNew(ctx context.Context, k store.Key, p store.Place) (store.Place, error) {
	err := s.write(ctx, "set a place", func(tx *sql.Tx) ([]store.Wake, error) {
		if _, err := tx.ExecContext(ctx, `insert into places (tenant, session, node, generation, restoring) values (?, ?, ?, ?, ?)
			on conflict do update set node = excluded.node, generation = max(generation + 1, excluded.generation), restoring = excluded.restoring
			where node = ''`, k.Tenant, k.Session, p.Node, p.Generation, p.Restore); err != nil {
			return nil, err
		}
		var err error
		p, err = placeOf(ctx, tx, k)
		return nil, err
	})
	return p, err
}

// putPlaces writes the places of a commit.
func putPlaces(ctx context.Context, tx *sql.Tx, places []backend.Place) error {
	return each(ctx, tx, `insert into places (tenant, session, node, generation, restoring, made, left_node, left_why, left_for) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict do update set node = excluded.node, generation = excluded.generation, restoring = excluded.restoring,
			made = max(made, excluded.made), left_node = excluded.left_node, left_why = excluded.left_why, left_for = excluded.left_for`,
		places, func(p backend.Place) []any {
			return []any{p.Tenant, p.Session, p.Node, p.Generation, p.Restore, backend.MadeIn(p.Place), p.Left.Node, p.Left.Why, p.Generation}
		})
}

const noteMade = "update places set made = generation where tenant = ? and session = ? and generation = ? and node <> ''"

// putMade records where workspaces were made.
func putMade(ctx context.Context, tx *sql.Tx, made []backend.Made) error {
	return each(ctx, tx, noteMade, made, func(m backend.Made) []any { return []any{m.Tenant, m.Session, m.Generation} })
}

// NoteMade implements store.Places.
func (s *Store) NoteMade(ctx context.Context, k store.Key, generation int64) error {
	return s.write(ctx, "note that a workspace was made", func(tx *sql.Tx) ([]store.Wake, error) {
		done, err := tx.ExecContext(ctx, noteMade, k.Tenant, k.Session, generation)
		if err != nil {
			return nil, err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return nil, cmp.Or(err, sql.ErrNoRows)
		}
		return nil, nil
	})
}

// voidExports marks exports that may have undone changes.
func voidExports(ctx context.Context, tx *sql.Tx, voids []backend.Void) error {
	return each(ctx, tx, `update places set export_turn = '', export_seq = ?, export_time = null where tenant = ? and session = ? and export_seq < ?`,
		voids, func(v backend.Void) []any { return []any{v.Seq, v.Tenant, v.Session, v.Seq} })
}

// ForgetPlace implements store.Places.
func (s *Store) ForgetPlace(ctx context.Context, k store.Key) error {
	return s.write(ctx, "forget a place", func(tx *sql.Tx) ([]store.Wake, error) {
		_, err := tx.ExecContext(ctx, `update places set node = '', restoring = 0, made = 0, left_node = '', left_why = '', export_turn = '', export_seq = 0, export_snapshot = '', export_time = null
			where tenant = ? and session = ?`, k.Tenant, k.Session)
		return nil, err
	})
}

// NoteExport implements store.Places.
func (s *Store) NoteExport(ctx context.Context, k store.Key, generation int64, e store.Export) error {
	return s.write(ctx, "note an export", func(tx *sql.Tx) ([]store.Wake, error) {
		p, err := placeOf(ctx, tx, k)
		if err == nil && (p.Generation != generation || p.Node == "") {
			err = sql.ErrNoRows
		}
		if err != nil || p.Export.Seq > e.Seq {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, `update places set export_turn = ?, export_seq = ?, export_snapshot = ?, export_time = ?, made = generation
			where tenant = ? and session = ?`, e.Turn, e.Seq, e.Snapshot, micros(s.clock()), k.Tenant, k.Session)
		return nil, err
	})
}

// PlacedOn implements store.Places.
func (s *Store) PlacedOn(ctx context.Context, node string, after store.Key, n int) ([]store.Key, error) {
	keys, err := collect(ctx, s.db.R, scanKey, `select tenant, session from places where node = ? and (tenant, session) > (?, ?)
		order by tenant, session limit ?`, node, after.Tenant, after.Session, limit(n))
	return keys, s.fail("list the places on a node", err)
}

// SetDraining implements store.Places.
func (s *Store) SetDraining(ctx context.Context, node string, draining bool) error {
	return s.write(ctx, "drain a node", func(tx *sql.Tx) ([]store.Wake, error) {
		query := "delete from drains where node = ?"
		if draining {
			query = "insert into drains (node) values (?) on conflict do nothing"
		}
		_, err := tx.ExecContext(ctx, query, node)
		return nil, err
	})
}

// Draining implements store.Places.
func (s *Store) Draining(ctx context.Context) ([]string, error) {
	nodes, err := collect(ctx, s.db.R, func(r *sql.Rows) (n string, err error) { return n, r.Scan(&n) }, "select node from drains order by node")
	return nodes, s.fail("list the nodes that are drained", err)
}
