package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// DeleteSession implements store.Store.
func (t sessions) DeleteSession(ctx context.Context, k store.Key, r store.Request) (store.Answer, error) {
	var answer store.Answer
	err := t.db.Write(ctx, "delete session", func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		// A repeated request waits here for the first one, and then finds its answer.
		r := r
		r.KeepUntil = plan.KeepDelete(r.KeepUntil, now)
		if answer, err = remember(ctx, tx, request{r, k.Tenant, "", k.Session}); err != nil || answer.Replayed {
			return nil, err
		}
		row, err := sessionRow(ctx, tx, k, forDelete)
		switch {
		case err != nil:
			return nil, err
		case row.Root != "":
			return nil, store.ErrSubagent
		}
		family, err := descendants(ctx, tx, k, forDelete)
		if err != nil {
			return nil, err
		}
		family = append(family, row)
		for _, s := range family {
			queued, _, err := queuedTurns(ctx, tx, s.Key)
			if err != nil {
				return nil, err
			}
			if s.ActiveTurn != "" || queued > 0 {
				return nil, store.ErrTurnActive
			}
		}
		return purgeAll(ctx, tx, family, now, store.DeleteGrace)
	})
	return plan.Answered(answer, err)
}

// purgeAll deletes sessions.
func purgeAll(ctx context.Context, tx Tx, all []*plan.Session, now time.Time, grace time.Duration) (wakes []store.Wake, err error) {
	for _, s := range all {
		if err := purge(ctx, tx, s.Key, s.Lease.Epoch, now, grace); err != nil {
			return nil, err
		}
		wakes = append(wakes, store.Wake{Key: s.Key, Kind: store.WakeEvents})
	}
	return wakes, nil
}

// DeleteIdle implements store.Store.
func (t sessions) DeleteIdle(ctx context.Context, idle time.Duration, most int) ([]store.Key, error) {
	found, err := sqldb.Collect(ctx, t.db.Reader(), scanKey,
		"select tenant, session from sessions s where "+idleSession+" order by update_time limit $2", idle, sqldb.Limit(most))
	if err != nil {
		return nil, t.db.Fail("list idle sessions", err)
	}
	var gone []store.Key
	for _, k := range found {
		deleted, err := t.deleteIfIdle(ctx, k, idle)
		if err != nil {
			return gone, err
		}
		if deleted {
			gone = append(gone, k)
		}
	}
	return gone, nil
}

// idleSession is the condition under which an idle session may be deleted. A paused schedule
// keeps its session, because it may be resumed. The sessions of subagents go with their root. So does a message to a webhook until it is
// delivered or given up. $1 is how long the session must have been idle.
const idleSession = `s.root = '' and s.update_time < clock_timestamp() - $1::interval and s.active_turn = ''
	and not exists (select 1 from sessions c join turns t on t.tenant = c.tenant and t.session = c.session
		where c.tenant = s.tenant and c.root = s.session and t.state in (1, 2, 3))
	and not exists (select 1 from turns t where t.tenant = s.tenant and t.session = s.session and t.state = 1)
	and not exists (select 1 from inbox i where i.tenant = s.tenant and i.session = s.session)
	and not exists (select 1 from schedules c where c.tenant = s.tenant and c.session = s.session and (c.due is not null or c.paused))
	and not exists (select 1 from jobs j where j.tenant = s.tenant and j.session = s.session and j.kind = 'webhook')`

// deleteIfIdle checks the condition again under the session's lock, and deletes
// the session.
func (t sessions) deleteIfIdle(ctx context.Context, k store.Key, idle time.Duration) (deleted bool, err error) {
	err = t.db.Write(ctx, "delete idle session", func(tx Tx) ([]store.Wake, error) {
		deleted = false
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		row, err := sessionRow(ctx, tx, k, forDelete)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		err = tx.QueryRow(ctx, "select "+idleSession+" from sessions s where s.tenant = $2 and s.session = $3", idle, k.Tenant, k.Session).Scan(&deleted)
		if err != nil || !deleted {
			return nil, err
		}
		family, err := descendants(ctx, tx, k, forDelete)
		if err != nil {
			return nil, err
		}
		wakes, err := purgeAll(ctx, tx, append(family, row), now, 0)
		return append(wakes, store.Wake{Kind: store.WakeJobs}), err
	})
	return deleted && err == nil, err
}

// OfSession are the tables whose rows are deleted with their session.
var OfSession = []string{"sessions", "turns", "events", "messages", "inbox", "pending_calls", "request_ids", "budgets", "reservations", "jobs", "message_index", "schedules", "deliveries", "webhooks", "triggers", "checkpoints", "feedback", "session_labels", "session_mcp", "work"}

// purge deletes everything of a session except its last epoch and its user, and puts the job
// that tells the peers.
func purge(ctx context.Context, tx Tx, k store.Key, epoch int64, now time.Time, grace time.Duration) error {
	if err := tx.Unindex(ctx, k); err != nil {
		return err
	}
	if err := settle(ctx, tx, k); err != nil {
		return err
	}
	all := []sqldb.Statement{sqldb.S(`
		insert into tombstones (tenant, session, epoch, delete_time, clean, user_id)
		select tenant, session, $3, $4, false, user_id from sessions where tenant = $1 and session = $2
		on conflict (tenant, session) do update
			set epoch = excluded.epoch, delete_time = excluded.delete_time, clean = false, user_id = excluded.user_id`,
		k.Tenant, k.Session, epoch, now)}
	for _, table := range OfSession {
		all = append(all, sqldb.S("delete from "+table+" where tenant = $1 and session = $2", k.Tenant, k.Session))
	}
	if _, err := tx.Send(ctx, all...); err != nil {
		return err
	}
	return tx.Insert(ctx, Rows{Jobs: []store.Job{plan.DeleteJob(k, epoch, now.Add(grace))}})
}

// LedgerLock is the name of the lock of a tenant's budgets. Each change of them takes it, after the locks of
// sessions' rows.
const LedgerLock = "fairlead budgets of "

// settle counts a session's reservations as used: the budgets of others must not wait for them when the session
// is deleted. The session's row is locked.
func settle(ctx context.Context, tx Tx, k store.Key) error {
	var open bool
	err := tx.QueryRow(ctx, "select exists (select 1 from reservations where tenant = $1 and session = $2)", k.Tenant, k.Session).Scan(&open)
	if err != nil || !open {
		return err
	}
	if err := tx.Lock(ctx, LedgerLock+k.Tenant); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update budgets as b set
			used_tokens = b.used_tokens + r.tokens, used_cost_nano_usd = b.used_cost_nano_usd + r.cost,
			used_wall_micros = b.used_wall_micros + r.wall,
			reserved_tokens = b.reserved_tokens - r.tokens, reserved_cost_nano_usd = b.reserved_cost_nano_usd - r.cost,
			reserved_wall_micros = b.reserved_wall_micros - r.wall
		from (select tenant, scope, subject, window_start, sum(tokens) tokens, sum(cost_nano_usd) cost, sum(wall_micros) wall
			from reservations where tenant = $1 and session = $2 group by 1, 2, 3, 4) r
		where b.tenant = r.tenant and b.scope = r.scope and b.subject = r.subject and b.window_start = r.window_start`,
		k.Tenant, k.Session)
	return err
}
