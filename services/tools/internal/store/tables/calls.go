package tables

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

type calls struct{ db DB }

// Enter implements store.Store.
func (t calls) Enter(ctx context.Context, ref store.Ref) (store.Record, error) {
	var r store.Record
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		r = store.Record{}
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			select coalesce(c.session, ''), coalesce(c.state, ''), coalesce(c.tool, ''), coalesce(c.digest, ''), coalesce(c.handed, false), c.result,
				coalesce(c.owner, ''), coalesce(c.address, ''), coalesce(c.claim, 0), coalesce(c.lease_until > clock_timestamp(), false),
				coalesce(c.begun, false), coalesce(c.node, ''), coalesce(c.generation, 0), c.arguments, c.question, coalesce(v.version, 0)
			from (select $1::text as tenant, $2::text as call_id) k
				left join calls c on c.tenant = k.tenant and c.call_id = k.call_id
				left join permission_versions v on v.tenant = k.tenant`,
			ref.Tenant, ref.CallID).Scan(&r.Session, &r.State, &r.Tool, &r.Digest, &r.Handed, &r.Result,
			&r.Owner.ID, &r.Owner.Address, &r.Claim, &r.Live, &r.Begun, &r.Node, &r.Generation, &r.Arguments, &r.Question, &r.Permissions)
	})
	return r, Failed(t.db, err, "read call %s", ref.CallID)
}

// fence stores the epoch, unless it is stale. The row stays locked until the
// transaction ends, so no other epoch can be stored before it commits.
func fence(ctx context.Context, tx sqldb.Tx, ref store.Ref) error {
	n, err := tx.Exec(ctx,
		`insert into sessions as s (tenant, session, epoch, generation) values ($1, $2, $3, $4)
		 on conflict (tenant, session) do update set epoch = excluded.epoch, generation = greatest(s.generation, excluded.generation)
		 where excluded.epoch >= s.epoch`,
		ref.Tenant, ref.Fenced(), ref.Epoch, ref.Generation)
	if err == nil && n == 0 {
		err = store.ErrStaleEpoch
	}
	return err
}

// Move implements store.Store.
func (t calls) Move(ctx context.Context, ref store.Ref, c store.Change) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		if c.Fenced {
			if err := fence(ctx, tx, ref); err != nil {
				return err
			}
		}
		err := move(ctx, tx, ref, c)
		if err == nil && c.Grant != nil {
			err = grant(ctx, tx, c.Grant)
		}
		if err == nil && c.Operation != nil {
			err = insertOperation(ctx, tx, ref, c.Operation)
		}
		return err
	})
	return Failed(t.db, err, "move call %s from %q to %q", ref.CallID, c.From, c.To)
}

func move(ctx context.Context, tx sqldb.Tx, ref store.Ref, c store.Change) error {
	owner, first, ttl := store.Owner{}, 0, time.Duration(0)
	if c.To == store.Started {
		owner, first, ttl = c.Owner, 1, c.TTL
	}
	epoch := ref.Epoch
	if ref.Holder != "" {
		epoch = 0 // of another session: the call is deleted with its own, whatever that one's epoch
	}
	args := []any{
		ref.Tenant, ref.CallID, epoch, c.To, store.Text(c.Tool), c.Digest, c.To == store.Delegated, c.Result, c.At,
		owner.ID, owner.Address, first, ttl, ref.Node, ref.Generation, c.Arguments, c.Question,
	}
	if c.From == store.None {
		return changed(tx.Exec(ctx, `
			insert into calls (tenant, call_id, epoch, state, tool, digest, handed, result, create_time, update_time,
				owner, address, claim, lease_until, node, generation, arguments, question, session)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9,
				$10, $11, $12, clock_timestamp() + $13::interval, $14, $15, $16, $17, $18)
			on conflict (tenant, call_id) do nothing`, append(args, ref.Session)...))
	}
	return changed(tx.Exec(ctx, `
		update calls set state = $4, epoch = greatest(epoch, $3), handed = handed or $7, result = $8, update_time = $9,
			tool = coalesce(nullif($5, ''), tool), digest = coalesce(nullif($6, ''), digest),
			owner = coalesce(nullif($10, ''), owner), address = coalesce(nullif($11, ''), address),
			claim = claim + $12, lease_until = clock_timestamp() + $13::interval,
			node = case when $12 = 1 then $14 else node end, generation = case when $12 = 1 then $15 else generation end,
			arguments = coalesce($16::bytea, arguments), question = coalesce($17::bytea, question)
		where tenant = $1 and call_id = $2 and state = $18 and ($19::bigint = 0 or claim = $19)`, append(args, c.From, c.Claim)...))
}

// TakeOver implements store.Store.
func (t calls) TakeOver(ctx context.Context, ref store.Ref, claim int64, owner store.Owner, ttl time.Duration) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		if err := fence(ctx, tx, ref); err != nil {
			return err
		}
		return changed(tx.Exec(ctx, `
			update calls set owner = $4, address = $5, claim = claim + 1, lease_until = clock_timestamp() + $6::interval
			where tenant = $1 and call_id = $2 and state = 'started' and claim = $3
				and (lease_until is null or lease_until <= clock_timestamp() or owner = $4)`,
			ref.Tenant, ref.CallID, claim, owner.ID, owner.Address, ttl))
	})
	return Failed(t.db, err, "take over call %s", ref.CallID)
}

// Renew implements store.Store.
func (t calls) Renew(ctx context.Context, owner string, ttl time.Duration, held []store.Held) ([]store.Held, error) {
	if len(held) == 0 {
		return nil, nil
	}
	all := make([]sqldb.Statement, len(held))
	for i, h := range held {
		all[i] = sqldb.S(`
			update calls set lease_until = clock_timestamp() + $1::interval, begun = begun or $2
			where tenant = $3 and call_id = $4 and claim = $5 and owner = $6 and state = 'started'`,
			ttl, h.Begun, h.Tenant, h.CallID, h.Claim, owner)
	}
	var lost []store.Held
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		renewed, err := tx.Send(ctx, all...)
		lost = nil
		for i, n := range renewed {
			if n == 0 {
				lost = append(lost, held[i])
			}
		}
		return err
	})
	return lost, Failed(t.db, err, "renew the leases of %d calls", len(held))
}

// Release implements store.Store.
func (t calls) Release(ctx context.Context, owner string) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Send(ctx,
			sqldb.S(`update calls set lease_until = clock_timestamp() where owner = $1 and state = 'started'`, owner),
			sqldb.S(`update operations set lease_until = clock_timestamp() where owner = $1 and state = 'running'`, owner))
		return err
	})
	return Failed(t.db, err, "release what a replica holds")
}

// DeleteSession implements store.Store. The fence comes first: it waits for
// transactions that are about to start a call.
func (t calls) DeleteSession(ctx context.Context, tenant, session string, next int64) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Send(ctx, sqldb.S(
			`insert into sessions as s (tenant, session, epoch) values ($1, $2, $3)
			 on conflict (tenant, session) do update set epoch = greatest(s.epoch, excluded.epoch)`,
			tenant, session, next),
			sqldb.S(`delete from calls where tenant = $1 and session = $2 and epoch < $3`, tenant, session, next),
			sqldb.S(`delete from grants where tenant = $1 and session = $2`, tenant, session), raised(tenant))
		return err
	})
	return Failed(t.db, err, "delete the calls of %s", session)
}
