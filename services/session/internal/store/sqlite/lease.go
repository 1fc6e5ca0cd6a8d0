package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Claim implements store.Store. The longest-waiting session of each tenant
// comes before the second of any tenant.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	var leases []store.Lease
	err := s.write(ctx, "claim sessions", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		found, err := claimable(ctx, tx, c, micros(now))
		if err != nil {
			return nil, err
		}
		for _, l := range backend.WithinLimits(found, c) {
			if err := tx.QueryRowContext(ctx, `
				update sessions set epoch = epoch + 1, claims = claims + 1, holder = ?, lease_until = ?,
					fence_due = fence_due or lease_until is not null
				where tenant = ? and session = ? returning epoch, fence_due, claims`,
				c.Replica, micros(now.Add(c.TTL)), l.Tenant, l.Session).Scan(&l.Epoch, &l.FenceDue, &l.Claims); err != nil {
				return nil, err
			}
			leases = append(leases, l)
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// claimable lists the sessions that may be claimed, as leases without an epoch.
func claimable(ctx context.Context, tx *sql.Tx, c store.Claim, now int64) ([]store.Lease, error) {
	atMost := c.Limit
	if c.TenantLimit > 0 { // some of them may exceed the limit
		atMost = 0
	}
	only, args := "", []any{now, c.SuspectAt, c.Suspects, limit(atMost)}
	for i, k := range c.Only {
		only += fmt.Sprintf(", (?%d, ?%d)", len(args)+1, len(args)+2)
		if args = append(args, k.Tenant, k.Session); i == len(c.Only)-1 {
			only = " and (tenant, session) in (values " + only[2:] + ")"
		}
	}
	return collect(ctx, tx, func(r *sql.Rows) (l store.Lease, err error) {
		return l, r.Scan(&l.Tenant, &l.Session, &l.Suspect)
	}, `
		with free as (
			select tenant, session, ready_time, ?2 > 0 and claims >= ?2 as suspect,
				row_number() over (partition by ?2 > 0 and claims >= ?2 order by ready_time, session) as nth
			from sessions where runnable = 1 and (lease_until is null or lease_until <= ?1)`+only+`
		)
		select tenant, session, suspect from free where not suspect or nth <= ?3
		order by row_number() over (partition by tenant order by ready_time, session), ready_time, tenant, session
		limit ?4`, args...)
}

func scanKey(r *sql.Rows) (k store.Key, err error) { return k, r.Scan(&k.Tenant, &k.Session) }

// held reads the session's row if the lease is valid, or returns
// store.ErrStaleEpoch.
func held(ctx context.Context, q queryer, l store.Lease) (*backend.Session, error) {
	row, err := sessionRow(ctx, q, l.Key)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, store.ErrStaleEpoch
	case err != nil:
		return nil, err
	case !row.Held || row.Epoch != l.Epoch:
		return nil, store.ErrStaleEpoch
	}
	return row, nil
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, l store.Lease) (*store.Snapshot, error) {
	out := &store.Snapshot{}
	err := s.read(ctx, "load session", func(tx *sql.Tx) error {
		row, err := held(ctx, tx, l)
		if err != nil {
			return err
		}
		out.Claims = row.Claims
		if out.Session, err = row.Proto(); err != nil {
			return err
		}
		if out.Active, err = activeTurn(ctx, tx, row); err != nil {
			return err
		}
		if out.Commands, err = commands(ctx, tx, l.Key); err != nil {
			return err
		}
		if out.Place, err = placeOf(ctx, tx, l.Key); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		out.Pending, err = collect(ctx, tx, func(r *sql.Rows) (p store.PendingCall, err error) {
			return p, r.Scan(&p.CallID, &p.TurnID, &p.Answer, &p.Digest)
		}, "select call, turn, answer, digest from pending_calls where tenant = ? and session = ? order by call", l.Tenant, l.Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func activeTurn(ctx context.Context, q queryer, row *backend.Session) (*store.TurnRow, error) {
	if row.ActiveTurn == "" {
		return nil, nil
	}
	return turnRow(ctx, q, row.Key, row.ActiveTurn)
}

func turnRow(ctx context.Context, q queryer, k store.Key, id string) (*store.TurnRow, error) {
	t := &store.TurnRow{ID: id}
	var body []byte
	if err := q.QueryRowContext(ctx, "select body, run from turns where tenant = ? and session = ? and turn = ?",
		k.Tenant, k.Session, id).Scan(&body, &t.Run); err != nil {
		return nil, err
	}
	turns, err := backend.Decode[sessionv1.Turn]([][]byte{body})
	if err != nil {
		return nil, err
	}
	t.Turn = turns[0]
	return t, nil
}

// Fenced implements store.Store.
func (s *Store) Fenced(ctx context.Context, l store.Lease) error {
	return s.write(ctx, "note that a session is fenced", func(tx *sql.Tx) ([]store.Wake, error) {
		res, err := tx.ExecContext(ctx, `
			update sessions set fence_due = 0 where tenant = ? and session = ? and epoch = ? and lease_until is not null`,
			l.Tenant, l.Session, l.Epoch)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return nil, err
		}
		return nil, store.ErrStaleEpoch
	})
}

// LoadTurn implements store.Store.
func (s *Store) LoadTurn(ctx context.Context, l store.Lease, id string) (*store.TurnRow, error) {
	var out *store.TurnRow
	err := s.read(ctx, "load turn", func(tx *sql.Tx) (err error) {
		if _, err = held(ctx, tx, l); err != nil {
			return err
		}
		out, err = turnRow(ctx, tx, l.Key, id)
		return err
	})
	return out, err
}

// Inbox implements store.Store.
func (s *Store) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	var out []store.Command
	err := s.read(ctx, "read inbox", func(tx *sql.Tx) (err error) {
		if _, err = held(ctx, tx, l); err != nil {
			return err
		}
		out, err = commands(ctx, tx, l.Key)
		return err
	})
	return out, err
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, ttl time.Duration) ([]store.Key, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	asked := make([][3]any, 0, len(leases))
	for _, l := range leases {
		asked = append(asked, [3]any{l.Tenant, l.Session, l.Epoch})
	}
	list, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	renewed := make(map[store.Lease]bool, len(leases))
	err = s.write(ctx, "renew leases", func(tx *sql.Tx) ([]store.Wake, error) {
		_, err := collect(ctx, tx, func(r *sql.Rows) (l store.Lease, err error) {
			err = r.Scan(&l.Tenant, &l.Session, &l.Epoch)
			renewed[l] = true
			return l, err
		}, `
			update sessions set lease_until = ?
			from (select value ->> 0 as tenant, value ->> 1 as session, value ->> 2 as epoch from json_each(?)) as a
			where sessions.tenant = a.tenant and sessions.session = a.session and sessions.epoch = a.epoch and lease_until is not null
			returning sessions.tenant, sessions.session, sessions.epoch`,
			micros(s.clock().Add(ttl)), string(list))
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	var lost []store.Key
	for _, l := range leases {
		if !renewed[store.Lease{Key: l.Key, Epoch: l.Epoch}] {
			lost = append(lost, l.Key)
		}
	}
	return lost, nil
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	return s.write(ctx, "release session", func(tx *sql.Tx) ([]store.Wake, error) {
		var runnable bool
		err := tx.QueryRowContext(ctx, `
			update sessions set lease_until = null, holder = '', ready_time = ?, claims = max(claims - 1, 0)
			where tenant = ? and session = ? and epoch = ? and lease_until is not null
			returning runnable`,
			micros(s.clock()), l.Tenant, l.Session, l.Epoch).Scan(&runnable)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !runnable {
			return nil, nil
		}
		return []store.Wake{{Key: l.Key, Kind: store.WakeInbox}}, err
	})
}

// ReleaseIdle implements store.Store.
func (s *Store) ReleaseIdle(ctx context.Context, l store.Lease) (bool, error) {
	var released bool
	err := s.write(ctx, "release idle session", func(tx *sql.Tx) ([]store.Wake, error) {
		if _, err := held(ctx, tx, l); err != nil {
			return nil, err
		}
		res, err := tx.ExecContext(ctx, `
			update sessions set lease_until = null, holder = '', claims = 0
			where tenant = ? and session = ? and runnable = 0`, l.Tenant, l.Session)
		if err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		released = n > 0
		return nil, err
	})
	return released, err
}
