package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type leases struct {
	db DB
	workQueues
}

// held reads the session's row if the lease is valid, or returns
// store.ErrStaleEpoch.
func held(ctx context.Context, q sqldb.Queryer, l store.Lease) (*plan.Session, error) {
	row, err := sessionRow(ctx, q, l.Key, "")
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, store.ErrStaleEpoch
	case err != nil:
		return nil, err
	case !row.Lease.Held || row.Lease.Epoch != l.Epoch:
		return nil, store.ErrStaleEpoch
	}
	return row, nil
}

// Load implements store.Store.
func (t leases) Load(ctx context.Context, l store.Lease) (*store.Snapshot, error) {
	var out *store.Snapshot
	err := t.db.Read(ctx, "load session", func(q sqldb.Queryer) error {
		out = &store.Snapshot{}
		row, err := held(ctx, q, l)
		if err != nil {
			return err
		}
		out.Claims = row.Lease.Claims
		if out.Session, err = row.Proto(); err != nil {
			return err
		}
		if row.ActiveTurn != "" {
			if out.Active, err = turnRow(ctx, q, row.Key, row.ActiveTurn); err != nil {
				return err
			}
		}
		if out.Commands, err = commands(ctx, q, l.Key); err != nil {
			return err
		}
		if out.Place, err = placeOf(ctx, q, l.Key, ""); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		out.Pending, err = sqldb.Collect(ctx, q, func(r sqldb.Row) (p store.PendingCall, err error) {
			return p, r.Scan(&p.CallID, &p.TurnID, &p.Answer, &p.Digest)
		}, "select call, turn, answer, digest from pending_calls where tenant = $1 and session = $2 order by call", l.Tenant, l.Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func turnRow(ctx context.Context, q sqldb.Queryer, k store.Key, id string) (*store.TurnRow, error) {
	t := &store.TurnRow{ID: id}
	var body []byte
	err := q.QueryRow(ctx, "select body, run from turns where tenant = $1 and session = $2 and turn = $3", k.Tenant, k.Session, id).Scan(&body, &t.Run)
	if err != nil {
		return nil, err
	}
	t.Turn, err = decode[sessionv1.Turn](body)
	return t, err
}

// LoadTurn implements store.Store.
func (t leases) LoadTurn(ctx context.Context, l store.Lease, id string) (*store.TurnRow, error) {
	out := &store.TurnRow{ID: id}
	var found *string
	var body []byte
	err := t.db.Reader().QueryRow(ctx, "select t.turn, t.body, t.run from sessions s"+
		" left join turns t on t.tenant = s.tenant and t.session = s.session and t.turn = $4"+whileHeld,
		l.Tenant, l.Session, l.Epoch, id).Scan(&found, &body, &out.Run)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = store.ErrStaleEpoch
	case err == nil && found == nil:
		err = sql.ErrNoRows
	case err == nil:
		out.Turn, err = decode[sessionv1.Turn](body)
	}
	if err != nil {
		return nil, t.db.Fail("load turn", err)
	}
	return out, nil
}

// whileHeld is the condition that a lease is valid, of a statement that reads more of the session: one statement
// costs a fraction of a transaction that asks first.
const whileHeld = " where s.tenant = $1 and s.session = $2 and s.epoch = $3 and s.lease_until is not null"

// Inbox implements store.Store.
func (t leases) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	var out []store.Command
	err := store.ErrStaleEpoch
	asked := t.db.Reader().Query(ctx, func(r sqldb.Row) error {
		var c store.Command
		var id *int64
		var kind, turn, call, target, user *string
		var at *time.Time
		if err = r.Scan(&id, &kind, &turn, &call, &target, &user, &c.Body, &at); err != nil || id == nil {
			return err
		}
		c.ID, c.Kind, c.TurnID, c.CallID, c.Target, c.User, c.Time = *id, store.CommandKind(*kind), *turn, *call, *target, *user, *at
		out = append(out, c)
		return nil
	}, "select i.id, i.kind, i.turn, i.call, i.target, i.user_name, i.body, i.create_time from sessions s"+
		" left join inbox i on i.tenant = s.tenant and i.session = s.session"+whileHeld+" order by i.id",
		l.Tenant, l.Session, l.Epoch)
	if asked != nil {
		err = asked
	}
	return out, t.db.Fail("read inbox", err)
}

// Salvage implements store.Store.
func (t leases) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	var out *store.Salvage
	err := t.db.Read(ctx, "read the unfinished work of a session", func(q sqldb.Queryer) error {
		row, err := held(ctx, q, l)
		if err != nil {
			return err
		}
		out = &store.Salvage{LastSeq: row.LastSeq}
		if out.Turns, err = sqldb.Collect(ctx, q, func(r sqldb.Row) (*sessionv1.Turn, error) {
			var id string
			var body []byte
			err := r.Scan(&id, &body)
			return plan.ReadableTurn(l.Session, id, body), err
		}, "select turn, body from turns where tenant = $1 and session = $2 and state in ($3, $4, $5) order by number",
			l.Tenant, l.Session, plan.Open[0], plan.Open[1], plan.Open[2]); err != nil {
			return err
		}
		if out.Commands, err = sqldb.Collect(ctx, q, sqldb.Value[int64],
			"select id from inbox where tenant = $1 and session = $2 order by id", l.Tenant, l.Session); err != nil {
			return err
		}
		if out.Pending, err = sqldb.Collect(ctx, q, sqldb.Value[string],
			"select call from pending_calls where tenant = $1 and session = $2 order by call", l.Tenant, l.Session); err != nil {
			return err
		}
		out.Reservations, err = sqldb.Collect(ctx, q, sqldb.Value[string],
			"select distinct id from reservations where tenant = $1 and session = $2 order by id", l.Tenant, l.Session)
		return err
	})
	return out, err
}

// Fenced implements store.Store.
func (t leases) Fenced(ctx context.Context, l store.Lease) error {
	n, err := t.db.Exec(ctx, "record that a session is fenced", `
		update sessions set fence_due = false where tenant = $1 and session = $2 and epoch = $3 and lease_until is not null`,
		l.Tenant, l.Session, l.Epoch)
	if err == nil && n == 0 {
		err = t.db.Fail("record that a session is fenced", store.ErrStaleEpoch)
	}
	return err
}

// Release implements store.Store.
func (t leases) Release(ctx context.Context, l store.Lease) error { return t.release(ctx, l, "", 0) }

// PassOn implements store.Store.
func (t leases) PassOn(ctx context.Context, l store.Lease, replica string, ttl time.Duration) error {
	return t.release(ctx, l, replica, ttl)
}

func (t leases) release(ctx context.Context, l store.Lease, to string, ttl time.Duration) error {
	return t.db.Write(ctx, "release session", func(tx Tx) ([]store.Wake, error) {
		runnable, err := sqldb.Value[bool](tx.QueryRow(ctx, `
			update sessions set lease_until = null, holder = '', ready_time = clock_timestamp(), claims = greatest(claims - 1, 0),
				passed_to = $4, passed_until = case when $4 = '' then null else clock_timestamp() + $5::interval end
			where tenant = $1 and session = $2 and epoch = $3 and lease_until is not null
			returning runnable`, l.Tenant, l.Session, l.Epoch, to, ttl))
		if errors.Is(err, sql.ErrNoRows) || err == nil && !runnable {
			return nil, nil
		}
		return []store.Wake{{Key: l.Key, Kind: store.WakeInbox}}, err
	})
}

// ReleaseIdle implements store.Store.
func (t leases) ReleaseIdle(ctx context.Context, l store.Lease) (bool, error) {
	var released bool
	err := t.db.WriteUnsynced(ctx, "release idle session", func(tx Tx) error {
		n, err := tx.Exec(ctx, `update sessions set lease_until = null, holder = '', claims = 0
			where tenant = $1 and session = $2 and epoch = $3 and lease_until is not null and not runnable`, l.Tenant, l.Session, l.Epoch)
		if released = n > 0; released || err != nil {
			return err
		}
		_, err = held(ctx, tx, l)
		return err
	})
	return released && err == nil, err
}
