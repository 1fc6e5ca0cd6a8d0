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

type leases struct{ db DB }

// held reads the session's row if the lease is valid, or returns
// store.ErrStaleEpoch.
func held(ctx context.Context, q sqldb.Queryer, l store.Lease, lock string) (*plan.Session, error) {
	row, err := sessionRow(ctx, q, l.Key, lock)
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
		row, err := held(ctx, q, l, "")
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
	var out *store.TurnRow
	err := t.db.Read(ctx, "load turn", func(q sqldb.Queryer) (err error) {
		if _, err = held(ctx, q, l, ""); err != nil {
			return err
		}
		out, err = turnRow(ctx, q, l.Key, id)
		return err
	})
	return out, err
}

// Inbox implements store.Store.
func (t leases) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	var out []store.Command
	err := t.db.Read(ctx, "read inbox", func(q sqldb.Queryer) (err error) {
		if _, err = held(ctx, q, l, ""); err != nil {
			return err
		}
		out, err = commands(ctx, q, l.Key)
		return err
	})
	return out, err
}

// Salvage implements store.Store.
func (t leases) Salvage(ctx context.Context, l store.Lease) (*store.Salvage, error) {
	var out *store.Salvage
	err := t.db.Read(ctx, "read the unfinished work of a session", func(q sqldb.Queryer) error {
		row, err := held(ctx, q, l, "")
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
	err := t.db.Write(ctx, "release idle session", func(tx Tx) ([]store.Wake, error) {
		if _, err := held(ctx, tx, l, forChange); err != nil {
			return nil, err
		}
		n, err := tx.Exec(ctx, "update sessions set lease_until = null, holder = '', claims = 0 where tenant = $1 and session = $2 and not runnable",
			l.Tenant, l.Session)
		released = n > 0
		return nil, err
	})
	return released && err == nil, err
}
