package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// CreateSession implements store.Store.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "create session", func(tx pgx.Tx) error {
		answer = store.Answer{Value: n.Session}
		now, err := dbNow(ctx, tx)
		if err != nil {
			return err
		}
		owner := ""
		if n.Request.KeepUntil.IsZero() {
			owner = n.Session
		}
		if answer, err = remember(ctx, tx, n.Tenant, owner, n.Request, answer.Value); err != nil || answer.Replayed {
			return err
		}
		rows, err := backend.PlanCreate(n, now)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		if err := insertSession(ctx, tx, rows.Session, b); err != nil {
			return err
		}
		queueEvents(b, []backend.Event{rows.Event})
		queueMessages(b, rows.Messages)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		return notify(ctx, tx, store.Wake{Key: n.Key, Kind: store.WakeEvents})
	})
	return backend.Answered(answer, err)
}

// insertSession inserts the session's own row, and adds the statements that
// follow to b.
func insertSession(ctx context.Context, tx pgx.Tx, n *backend.Session, b *pgx.Batch) error {
	tag, err := tx.Exec(ctx, `
		insert into sessions (tenant, session, agent, agent_revision, body, create_time, update_time, last_seq, head, ready_time, epoch)
		values ($1, $2, $3, $4, $5, $6, $6, $7, $8, $6, 0)
		on conflict do nothing`,
		n.Tenant, n.Session, n.Agent, n.AgentRevision, n.Body, n.CreateTime, n.LastSeq, n.Head)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return store.ErrExists
	}
	// A statement of its own, so that it sees the tombstone of a deletion for
	// which the insert had to wait.
	b.Queue(`
		update sessions s set epoch = t.epoch from tombstones t
		where s.tenant = $1 and s.session = $2 and t.tenant = s.tenant and t.session = s.session`, n.Tenant, n.Session)
	b.Queue("select exists (select 1 from tombstones where tenant = $1 and session = $2 and not clean)", n.Tenant, n.Session).
		QueryRow(func(row pgx.Row) error {
			var deleting bool
			if err := row.Scan(&deleting); err != nil || !deleting {
				return err
			}
			return store.ErrDeleting
		})
	return nil
}

const sessionColumns = `s.tenant, s.session, s.agent, s.agent_revision, s.body, s.create_time, s.update_time, s.last_seq, s.head, s.active_turn,
	s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.thinking_tokens, s.cost_nano_usd,
	s.finished_turns, s.epoch, s.lease_until is not null, s.claims, s.next_command, s.next_turn`

func scanSession(row pgx.CollectableRow) (*backend.Session, error) {
	return scanColumns(row, func(*backend.Session) []any { return nil })
}

// scanColumns reads sessionColumns and the additional columns.
func scanColumns(row pgx.CollectableRow, besides func(*backend.Session) []any) (*backend.Session, error) {
	r := &backend.Session{}
	to := []any{&r.Tenant, &r.Session, &r.Agent, &r.AgentRevision, &r.Body, &r.CreateTime, &r.UpdateTime, &r.LastSeq, &r.Head, &r.ActiveTurn,
		&r.Usage.Input, &r.Usage.Output, &r.Usage.CacheRead, &r.Usage.CacheWrite, &r.Usage.Thinking, &r.Usage.CostNanoUSD,
		&r.FinishedTurns, &r.Epoch, &r.Held, &r.Claims, &r.NextCommand, &r.NextTurn}
	return r, row.Scan(append(to, besides(r)...)...)
}

// shownColumns are the columns of a session that is shown.
const shownColumns = sessionColumns + `,
	exists (select 1 from inbox i where i.tenant = s.tenant and i.session = s.session and i.kind = 'rewind')`

func scanShown(row pgx.CollectableRow) (*backend.Session, error) {
	return scanColumns(row, func(r *backend.Session) []any { return []any{&r.Rewinding} })
}

// sessionRow reads a session's row, or returns pgx.ErrNoRows; lock is "" or a
// locking clause.
func sessionRow(ctx context.Context, q queryer, k store.Key, lock string) (*backend.Session, error) {
	rows, err := q.Query(ctx, "select "+sessionColumns+" from sessions s where tenant = $1 and session = $2 "+lock, k.Tenant, k.Session)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, scanSession)
}

// Locking clauses for a session's row. Claims, commits and submissions change it and exclude each other. They
// do not exclude transactions that only keep the session from being deleted, such as the indexing of a long
// conversation, which lock for key share. A deletion waits for these, too.
const (
	forUpdate = "for no key update"
	forDelete = "for update"
)

// GetSession implements store.Store.
func (s *Store) GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error) {
	rows, err := s.pool.Query(ctx, "select "+shownColumns+" from sessions s where tenant = $1 and session = $2", k.Tenant, k.Session)
	if err != nil {
		return nil, fail("get session", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, scanShown)
	if err != nil {
		return nil, fail("get session", err)
	}
	return row.Proto()
}

// ListSessions implements store.Store.
func (s *Store) ListSessions(ctx context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	query := "select " + shownColumns + " from sessions s where tenant = @tenant"
	args := pgx.NamedArgs{"tenant": p.Tenant, "limit": limit(p.Limit)}
	if p.Agent != "" {
		query += " and agent = @agent"
		args["agent"] = p.Agent
	}
	if p.AfterID != "" {
		query += " and (create_time, session) < (@time, @id)"
		args["time"], args["id"] = p.AfterTime, p.AfterID
	}
	out, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (*sessionv1.Session, error) {
		row, err := scanShown(r)
		if err != nil {
			return nil, err
		}
		return row.Proto()
	}, query+" order by create_time desc, session desc limit @limit", args)
	return out, fail("list sessions", err)
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, k store.Key, r store.Request) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "delete session", func(tx pgx.Tx) error {
		answer = store.Answer{Value: k.Session}
		now, err := dbNow(ctx, tx)
		if err != nil {
			return err
		}
		r := r
		r.KeepUntil = backend.KeepDelete(r.KeepUntil, now)
		// A repeated request waits here for the first one, and then finds its
		// answer.
		if answer, err = remember(ctx, tx, k.Tenant, "", r, answer.Value); err != nil || answer.Replayed {
			return err
		}
		row, err := sessionRow(ctx, tx, k, forDelete)
		if err != nil {
			return err
		}
		queued, _, err := queuedTurns(ctx, tx, k)
		if err != nil {
			return err
		}
		if row.ActiveTurn != "" || queued > 0 {
			return store.ErrTurnActive
		}
		if err := purge(ctx, tx, k, row.Epoch, now, store.DeleteGrace); err != nil {
			return err
		}
		return notify(ctx, tx, store.Wake{Key: k, Kind: store.WakeEvents})
	})
	return backend.Answered(answer, err)
}

// DeleteIdle implements store.Store.
func (s *Store) DeleteIdle(ctx context.Context, idle time.Duration, most int) ([]store.Key, error) {
	found, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (k store.Key, err error) {
		return k, r.Scan(&k.Tenant, &k.Session)
	}, "select s.tenant, s.session from sessions s where "+idleSession+" order by s.update_time limit $2", idle, limit(most))
	if err != nil {
		return nil, fail("list idle sessions", err)
	}
	var gone []store.Key
	for _, k := range found {
		deleted, err := s.deleteIfIdle(ctx, k, idle)
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
// keeps its session, because it may be resumed. So does a message to a webhook until it is
// delivered or given up. $1 is how long the session must have been idle.
const idleSession = `s.update_time < clock_timestamp() - $1::interval and s.active_turn = ''
	and not exists (select 1 from turns t where t.tenant = s.tenant and t.session = s.session and t.state = 1)
	and not exists (select 1 from inbox i where i.tenant = s.tenant and i.session = s.session)
	and not exists (select 1 from schedules c where c.tenant = s.tenant and c.session = s.session and (c.due is not null or c.paused))
	and not exists (select 1 from jobs j where j.tenant = s.tenant and j.session = s.session and j.kind = 'webhook')`

// deleteIfIdle checks the condition again under the session's lock, and deletes
// the session.
func (s *Store) deleteIfIdle(ctx context.Context, k store.Key, idle time.Duration) (deleted bool, err error) {
	err = s.write(ctx, "delete idle session", func(tx pgx.Tx) error {
		deleted = false
		now, err := dbNow(ctx, tx)
		if err != nil {
			return err
		}
		row, err := sessionRow(ctx, tx, k, forDelete)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, "select "+idleSession+" from sessions s where s.tenant = $2 and s.session = $3", idle, k.Tenant, k.Session).Scan(&deleted)
		if err != nil || !deleted {
			return err
		}
		if err := purge(ctx, tx, k, row.Epoch, now, 0); err != nil {
			return err
		}
		return notify(ctx, tx, store.Wake{Key: k, Kind: store.WakeEvents})
	})
	if deleted && err == nil {
		s.wakes.Send(store.Wake{Kind: store.WakeJobs})
	}
	return deleted, err
}

// ofSession are the tables whose rows are deleted with their session.
var ofSession = []string{"sessions", "turns", "events", "messages", "inbox", "pending_calls", "request_ids", "budgets", "reservations", "jobs", "message_index", "schedules", "deliveries", "webhooks", "checkpoints"}

// purge deletes everything of a session except its last epoch, and puts the job
// that tells the peers.
func purge(ctx context.Context, tx pgx.Tx, k store.Key, epoch int64, now time.Time, grace time.Duration) error {
	b := &pgx.Batch{}
	queueSettleAll(b, k)
	for _, table := range ofSession {
		b.Queue("delete from "+table+" where tenant = $1 and session = $2", k.Tenant, k.Session)
	}
	b.Queue(`
		insert into tombstones (tenant, session, epoch, delete_time, clean) values ($1, $2, $3, $4, false)
		on conflict (tenant, session) do update set epoch = excluded.epoch, delete_time = excluded.delete_time, clean = false`,
		k.Tenant, k.Session, epoch, now)
	queueJobs(b, []store.Job{backend.DeleteJob(k, epoch, now.Add(grace))})
	return tx.SendBatch(ctx, b).Close()
}
