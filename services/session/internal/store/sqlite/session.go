package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// CreateSession implements store.Store.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) (store.Answer, error) {
	answer := store.Answer{Value: n.Session}
	err := s.write(ctx, "create session", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, n.Tenant, n.Request, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		rows, err := backend.PlanCreate(n, now)
		if err != nil {
			return nil, err
		}
		if err := insertSession(ctx, tx, rows.Session); err != nil {
			return nil, err
		}
		if err := errors.Join(insertEvents(ctx, tx, []backend.Event{rows.Event}), insertMessages(ctx, tx, rows.Messages)); err != nil {
			return nil, err
		}
		owner := ""
		if n.Request.KeepUntil.IsZero() {
			owner = n.Session
		}
		if err := remember(ctx, tx, n.Tenant, owner, n.Request, answer.Value, now); err != nil {
			return nil, err
		}
		return []store.Wake{{Key: n.Key, Kind: store.WakeEvents}}, nil
	})
	return backend.Answered(answer, err)
}

// insertSession inserts the session's own row.
func insertSession(ctx context.Context, tx *sql.Tx, n *backend.Session) error {
	var deleting bool
	if err := tx.QueryRowContext(ctx, "select exists (select 1 from tombstones where tenant = ? and session = ? and clean = 0)",
		n.Tenant, n.Session).Scan(&deleting); err != nil {
		return err
	}
	if deleting {
		return store.ErrDeleting
	}
	at := micros(n.CreateTime)
	res, err := tx.ExecContext(ctx, `
		insert into sessions (tenant, session, agent, agent_revision, body, create_time, update_time, last_seq, head, ready_time, epoch)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
			coalesce((select epoch from tombstones where tenant = ? and session = ?), 0))
		on conflict do nothing`,
		n.Tenant, n.Session, n.Agent, n.AgentRevision, n.Body, at, at, n.LastSeq, n.Head, at, n.Tenant, n.Session)
	if err != nil {
		return err
	}
	if made, err := res.RowsAffected(); err != nil || made == 0 {
		return errors.Join(err, store.ErrExists)
	}
	return nil
}

const sessionColumns = `tenant, session, agent, agent_revision, body, create_time, update_time, last_seq, head, active_turn,
	input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, thinking_tokens, cost_nano_usd,
	finished_turns, epoch, lease_until is not null, claims, next_command, next_turn`

func scanSession(row interface{ Scan(dest ...any) error }) (*backend.Session, error) {
	return scanColumns(row, func(*backend.Session) []any { return nil })
}

// shownColumns are the columns of a session that is shown.
const shownColumns = sessionColumns + `,
	exists (select 1 from inbox i where i.tenant = sessions.tenant and i.session = sessions.session and i.kind = 'rewind')`

func scanShown(row interface{ Scan(dest ...any) error }) (*backend.Session, error) {
	return scanColumns(row, func(r *backend.Session) []any { return []any{&r.Rewinding} })
}

// scanColumns reads sessionColumns and the additional columns.
func scanColumns(row interface{ Scan(dest ...any) error }, besides func(*backend.Session) []any) (*backend.Session, error) {
	r := &backend.Session{}
	var created, updated int64
	to := []any{&r.Tenant, &r.Session, &r.Agent, &r.AgentRevision, &r.Body, &created, &updated, &r.LastSeq, &r.Head, &r.ActiveTurn,
		&r.Usage.Input, &r.Usage.Output, &r.Usage.CacheRead, &r.Usage.CacheWrite, &r.Usage.Thinking, &r.Usage.CostNanoUSD,
		&r.FinishedTurns, &r.Epoch, &r.Held, &r.Claims, &r.NextCommand, &r.NextTurn}
	err := row.Scan(append(to, besides(r)...)...)
	r.CreateTime, r.UpdateTime = fromMicros(created), fromMicros(updated)
	return r, err
}

// sessionRow reads a session's row, or returns sql.ErrNoRows.
func sessionRow(ctx context.Context, q queryer, k store.Key) (*backend.Session, error) {
	return scanSession(q.QueryRowContext(ctx, selectSession, k.Tenant, k.Session))
}

// GetSession implements store.Store.
func (s *Store) GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error) {
	row, err := scanShown(s.db.R.QueryRowContext(ctx, "select "+shownColumns+" from sessions where tenant = ? and session = ?", k.Tenant, k.Session))
	if err != nil {
		return nil, s.fail("get session", err)
	}
	return row.Proto()
}

// ListSessions implements store.Store.
func (s *Store) ListSessions(ctx context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	query := "select " + shownColumns + " from sessions where tenant = ?"
	args := []any{p.Tenant}
	if p.Agent != "" {
		query += " and agent = ?"
		args = append(args, p.Agent)
	}
	if p.AfterID != "" {
		query += " and (create_time, session) < (?, ?)"
		args = append(args, micros(p.AfterTime), p.AfterID)
	}
	rows, err := collect(ctx, s.db.R, func(r *sql.Rows) (*sessionv1.Session, error) {
		row, err := scanShown(r)
		if err != nil {
			return nil, err
		}
		return row.Proto()
	}, query+" order by create_time desc, session desc limit ?", append(args, limit(p.Limit))...)
	return rows, s.fail("list sessions", err)
}

// DeleteSession implements store.Store.
func (s *Store) DeleteSession(ctx context.Context, k store.Key, r store.Request) (store.Answer, error) {
	answer := store.Answer{Value: k.Session}
	err := s.write(ctx, "delete session", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, k.Tenant, r, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		row, err := sessionRow(ctx, tx, k)
		if err != nil {
			return nil, err
		}
		queued, _, err := queuedTurns(ctx, tx, k)
		if err != nil {
			return nil, err
		}
		if row.ActiveTurn != "" || queued > 0 {
			return nil, store.ErrTurnActive
		}
		if err := purge(ctx, tx, k, row.Epoch, now, store.DeleteGrace); err != nil {
			return nil, err
		}
		r.KeepUntil = backend.KeepDelete(r.KeepUntil, now)
		return []store.Wake{{Key: k, Kind: store.WakeEvents}}, remember(ctx, tx, k.Tenant, "", r, answer.Value, now)
	})
	return backend.Answered(answer, err)
}

// DeleteIdle implements store.Store.
func (s *Store) DeleteIdle(ctx context.Context, idle time.Duration, most int) ([]store.Key, error) {
	found, err := collect(ctx, s.db.R, scanKey,
		"select tenant, session from sessions s where "+idleSession+" order by update_time limit ?2", micros(s.clock().Add(-idle)), limit(most))
	if err != nil {
		return nil, s.fail("list idle sessions", err)
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
// delivered or given up. ?1 is the time since which the session must have been idle.
const idleSession = `s.update_time < ?1 and s.active_turn = ''
	and not exists (select 1 from turns t where t.tenant = s.tenant and t.session = s.session and t.state = 1)
	and not exists (select 1 from inbox i where i.tenant = s.tenant and i.session = s.session)
	and not exists (select 1 from schedules c where c.tenant = s.tenant and c.session = s.session and (c.due is not null or c.paused = 1))
	and not exists (select 1 from jobs j where j.tenant = s.tenant and j.session = s.session and j.kind = 'webhook')`

// deleteIfIdle checks the condition again in a write transaction, and deletes
// the session.
func (s *Store) deleteIfIdle(ctx context.Context, k store.Key, idle time.Duration) (deleted bool, err error) {
	err = s.write(ctx, "delete idle session", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		var epoch int64
		err := tx.QueryRowContext(ctx, "select epoch from sessions s where "+idleSession+" and tenant = ?2 and session = ?3",
			micros(now.Add(-idle)), k.Tenant, k.Session).Scan(&epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		deleted = true
		return []store.Wake{{Key: k, Kind: store.WakeEvents}, {Kind: store.WakeJobs}}, purge(ctx, tx, k, epoch, now, 0)
	})
	return deleted && err == nil, err
}

// ofSession are the tables whose rows are deleted with their session.
var ofSession = []string{"sessions", "turns", "events", "messages", "inbox", "pending_calls", "request_ids", "budgets", "reservations", "jobs", "message_index", "schedules", "deliveries", "webhooks", "checkpoints"}

// purge deletes everything of a session except its last epoch, and puts the job
// that tells the peers.
func purge(ctx context.Context, tx *sql.Tx, k store.Key, epoch int64, now time.Time, grace time.Duration) error {
	if _, err := tx.ExecContext(ctx, "delete from message_words where rowid in (select id from message_index where tenant = ? and session = ?)",
		k.Tenant, k.Session); err != nil {
		return err
	}
	if err := settleAll(ctx, tx, k); err != nil {
		return err
	}
	for _, table := range ofSession {
		if _, err := tx.ExecContext(ctx, "delete from "+table+" where tenant = ? and session = ?", k.Tenant, k.Session); err != nil { //nolint:gosec // the tables are those above
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `
		insert into tombstones (tenant, session, epoch, delete_time, clean) values (?, ?, ?, ?, 0)
		on conflict do update set epoch = excluded.epoch, delete_time = excluded.delete_time, clean = 0`,
		k.Tenant, k.Session, epoch, micros(now)); err != nil {
		return err
	}
	return insertJobs(ctx, tx, []store.Job{backend.DeleteJob(k, epoch, now.Add(grace))})
}
