package tables

import (
	"context"
	"database/sql"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type places struct{ db DB }

const selectPlace = `select node, generation, restoring, made = generation, left_node, left_why, left_for, export_turn, export_seq, export_snapshot, export_time
	from places where tenant = $1 and session = $2`

// placeOf reads a session's place, or returns sql.ErrNoRows. lock is "" or a locking clause.
func placeOf(ctx context.Context, q sqldb.Queryer, k store.Key, lock string) (store.Place, error) {
	var p store.Place
	var leftFor int64
	var exported *time.Time
	err := q.QueryRow(ctx, selectPlace+lock, k.Tenant, k.Session).Scan(
		&p.Node, &p.Generation, &p.Restore, &p.Made, &p.Left.Node, &p.Left.Why, &leftFor, &p.Export.Turn, &p.Export.Seq, &p.Export.Snapshot, &exported)
	if exported != nil {
		p.Export.Time = *exported
	}
	p.Left = plan.LeftFor(p, leftFor)
	return p, err
}

// PlaceOf implements store.Places.
func (t places) PlaceOf(ctx context.Context, k store.Key) (p store.Place, epoch int64, err error) {
	err = t.db.Read(ctx, "read a place", func(q sqldb.Queryer) (err error) {
		err = q.QueryRow(ctx, "select coalesce(max(epoch), 0) from sessions where tenant = $1 and session = $2", k.Tenant, k.Session).Scan(&epoch)
		if err != nil {
			return err
		}
		p, err = placeOf(ctx, q, k, "")
		return err
	})
	return p, epoch, err
}

// PlaceNew implements store.Places.
func (t places) PlaceNew(ctx context.Context, k store.Key, p store.Place) (out store.Place, err error) {
	err = t.db.Write(ctx, "set a place", func(tx Tx) (_ []store.Wake, err error) {
		if _, err := tx.Exec(ctx, `insert into places as p (tenant, session, node, generation, restoring) values ($1, $2, $3, $4, $5)
			on conflict (tenant, session) do update
			set node = excluded.node, generation = greatest(p.generation + 1, excluded.generation), restoring = excluded.restoring
			where p.node = ''`, k.Tenant, k.Session, p.Node, p.Generation, p.Restore); err != nil {
			return nil, err
		}
		out, err = placeOf(ctx, tx, k, "")
		return nil, err
	})
	return out, err
}

// HoldID implements store.Places.
func (t places) HoldID(ctx context.Context, k store.Key, user string) error {
	return t.db.Write(ctx, "hold the id of a session", func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		n, err := tx.Exec(ctx, `
			insert into tombstones as old (tenant, session, user_id, epoch, delete_time, clean) values ($1, $2, $3, 0, $5, true)
			on conflict (tenant, session) do update set user_id = excluded.user_id, delete_time = excluded.delete_time
			where not (old.user_id <> '' and old.user_id <> $3 and old.delete_time > clock_timestamp() - $4::interval)`,
			k.Tenant, k.Session, user, store.HoldTime, now)
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return nil, err
	})
}

// NoteMade implements store.Places.
func (t places) NoteMade(ctx context.Context, k store.Key, generation int64) error {
	n, err := t.db.Exec(ctx, "record that a workspace was made", noteMade, k.Tenant, k.Session, generation)
	if err == nil && n == 0 {
		err = t.db.Fail("record that a workspace was made", sql.ErrNoRows)
	}
	return err
}

const noteMade = "update places set made = generation where tenant = $1 and session = $2 and generation = $3 and node <> ''"

// ForgetPlace implements store.Places.
func (t places) ForgetPlace(ctx context.Context, k store.Key) error {
	_, err := t.db.Exec(ctx, "forget a place", `
		update places set node = '', restoring = false, made = 0, left_node = '', left_why = '',
			export_turn = '', export_seq = 0, export_snapshot = '', export_time = null
		where tenant = $1 and session = $2`, k.Tenant, k.Session)
	return err
}

// NoteExport implements store.Places.
func (t places) NoteExport(ctx context.Context, k store.Key, generation int64, e store.Export) error {
	return t.db.Write(ctx, "note an export", func(tx Tx) ([]store.Wake, error) {
		p, err := placeOf(ctx, tx, k, forDelete)
		if err == nil && (p.Generation != generation || p.Node == "") {
			err = sql.ErrNoRows
		}
		if err != nil || p.Export.Seq > e.Seq {
			return nil, err
		}
		_, err = tx.Exec(ctx, `update places set export_turn = $3, export_seq = $4, export_snapshot = $5, export_time = clock_timestamp(), made = generation
			where tenant = $1 and session = $2`, k.Tenant, k.Session, e.Turn, e.Seq, e.Snapshot)
		return nil, err
	})
}

func scanKey(r sqldb.Row) (k store.Key, err error) { return k, r.Scan(&k.Tenant, &k.Session) }

// PlacedOn implements store.Places.
func (t places) PlacedOn(ctx context.Context, node string, after store.Key, n int) ([]store.Key, error) {
	keys, err := sqldb.Collect(ctx, t.db.Reader(), scanKey, `
		select tenant, session from places where node = $1 and (tenant, session) > ($2, $3) order by tenant, session limit $4`,
		node, after.Tenant, after.Session, sqldb.Limit(n))
	return keys, t.db.Fail("list the places on a node", err)
}

// SetDraining implements store.Places.
func (t places) SetDraining(ctx context.Context, node string, draining bool) error {
	query := "delete from drains where node = $1"
	if draining {
		query = "insert into drains (node) values ($1) on conflict do nothing"
	}
	_, err := t.db.Exec(ctx, "drain a node", query, node)
	return err
}

// Draining implements store.Places.
func (t places) Draining(ctx context.Context) ([]string, error) {
	nodes, err := sqldb.Collect(ctx, t.db.Reader(), sqldb.Value[string], "select node from drains order by node")
	return nodes, t.db.Fail("list the nodes that are drained", err)
}
