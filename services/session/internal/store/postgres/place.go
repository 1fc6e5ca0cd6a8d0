package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

const selectPlace = `select node, generation, restoring, made = generation, left_node, left_why, left_for, export_turn, export_seq, export_snapshot, export_time
	from places where tenant = $1 and session = $2`

// scanPlace reads a place, or returns pgx.ErrNoRows.
func scanPlace(row pgx.Row) (p store.Place, err error) {
	var leftFor int64
	var at *time.Time
	err = row.Scan(&p.Node, &p.Generation, &p.Restore, &p.Made, &p.Left.Node, &p.Left.Why, &leftFor, &p.Export.Turn, &p.Export.Seq, &p.Export.Snapshot, &at)
	if at != nil {
		p.Export.Time = at.UTC()
	}
	p.Left = backend.LeftFor(p, leftFor)
	return p, err
}

// queuePlace reads a session's place, if it has one.
func queuePlace(b *pgx.Batch, k store.Key, p *store.Place) {
	b.Queue(selectPlace, k.Tenant, k.Session).QueryRow(func(row pgx.Row) (err error) {
		if *p, err = scanPlace(row); errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// PlaceOf implements store.Places.
func (s *Store) PlaceOf(ctx context.Context, k store.Key) (p store.Place, epoch int64, err error) {
	err = s.read(ctx, "read a place", func(tx pgx.Tx) (err error) {
		err = tx.QueryRow(ctx, "select coalesce(max(epoch), 0) from sessions where tenant = $1 and session = $2", k.Tenant, k.Session).Scan(&epoch)
		if err != nil {
			return err
		}
		p, err = scanPlace(tx.QueryRow(ctx, selectPlace, k.Tenant, k.Session))
		return err
	})
	return p, epoch, err
}

// PlaceNew implements store.Places.
func (s *Store) PlaceNew(ctx context.Context, k store.Key, p store.Place) (out store.Place, err error) {
	err = s.write(ctx, "set a place", func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `insert into places as p (tenant, session, node, generation, restoring) values ($1, $2, $3, $4, $5)
			on conflict (tenant, session) do update
			set node = excluded.node, generation = greatest(p.generation + 1, excluded.generation), restoring = excluded.restoring
			where p.node = ''`, k.Tenant, k.Session, p.Node, p.Generation, p.Restore); err != nil {
			return err
		}
		out, err = scanPlace(tx.QueryRow(ctx, selectPlace, k.Tenant, k.Session))
		return err
	})
	return out, err
}

// queuePlaces writes the places of a commit.
func queuePlaces(b *pgx.Batch, places []backend.Place) {
	for _, p := range places { // rare
		b.Queue(`insert into places as p (tenant, session, node, generation, restoring, made, left_node, left_why, left_for) values ($1, $2, $3, $4, $5, $6, $7, $8, $4)
			on conflict (tenant, session) do update set node = excluded.node, generation = excluded.generation, restoring = excluded.restoring,
				made = greatest(p.made, excluded.made), left_node = excluded.left_node, left_why = excluded.left_why, left_for = excluded.left_for`,
			p.Tenant, p.Session, p.Node, p.Generation, p.Restore, backend.MadeIn(p.Place), p.Left.Node, p.Left.Why)
	}
}

const noteMade = "update places set made = generation where tenant = $1 and session = $2 and generation = $3 and node <> ''"

// queueMade records where workspaces were made.
func queueMade(b *pgx.Batch, made []backend.Made) {
	for _, m := range made { // once in each place
		b.Queue(noteMade, m.Tenant, m.Session, m.Generation)
	}
}

// NoteMade implements store.Places.
func (s *Store) NoteMade(ctx context.Context, k store.Key, generation int64) error {
	return s.write(ctx, "note that a workspace was made", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, noteMade, k.Tenant, k.Session, generation)
		if err == nil && tag.RowsAffected() == 0 {
			err = pgx.ErrNoRows
		}
		return err
	})
}

// queueVoids marks exports that may have undone changes.
func queueVoids(b *pgx.Batch, voids []backend.Void) {
	for _, v := range voids { // rare
		b.Queue(`update places set export_turn = '', export_seq = $3, export_time = null where tenant = $1 and session = $2 and export_seq < $3`,
			v.Tenant, v.Session, v.Seq)
	}
}

// ForgetPlace implements store.Places.
func (s *Store) ForgetPlace(ctx context.Context, k store.Key) error {
	return s.write(ctx, "forget a place", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update places set node = '', restoring = false, made = 0, left_node = '', left_why = '', export_turn = '', export_seq = 0, export_snapshot = '', export_time = null
			where tenant = $1 and session = $2`, k.Tenant, k.Session)
		return err
	})
}

// NoteExport implements store.Places.
func (s *Store) NoteExport(ctx context.Context, k store.Key, generation int64, e store.Export) error {
	return s.write(ctx, "note an export", func(tx pgx.Tx) error {
		p, err := scanPlace(tx.QueryRow(ctx, selectPlace+" for update", k.Tenant, k.Session))
		if err == nil && (p.Generation != generation || p.Node == "") {
			err = pgx.ErrNoRows
		}
		if err != nil || p.Export.Seq > e.Seq {
			return err
		}
		_, err = tx.Exec(ctx, `update places set export_turn = $3, export_seq = $4, export_snapshot = $5, export_time = clock_timestamp(), made = generation
			where tenant = $1 and session = $2`, k.Tenant, k.Session, e.Turn, e.Seq, e.Snapshot)
		return err
	})
}

// PlacedOn implements store.Places.
func (s *Store) PlacedOn(ctx context.Context, node string, after store.Key, n int) ([]store.Key, error) {
	keys, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (k store.Key, err error) { return k, r.Scan(&k.Tenant, &k.Session) },
		"select tenant, session from places where node = $1 and (tenant, session) > ($2, $3) order by tenant, session limit $4",
		node, after.Tenant, after.Session, limit(n))
	return keys, fail("list the places on a node", err)
}

// SetDraining implements store.Places.
func (s *Store) SetDraining(ctx context.Context, node string, draining bool) error {
	query := "delete from drains where node = $1"
	if draining {
		query = "insert into drains (node) values ($1) on conflict do nothing"
	}
	_, err := s.pool.Exec(ctx, query, node)
	return fail("drain a node", err)
}

// Draining implements store.Places.
func (s *Store) Draining(ctx context.Context) ([]string, error) {
	nodes, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (n string, err error) { return n, r.Scan(&n) }, "select node from drains order by node")
	return nodes, fail("list the nodes that are drained", err)
}
