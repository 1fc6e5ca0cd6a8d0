package sqlite

import (
	"context"
	"database/sql"
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	var errs []error
	err := s.db.write(ctx, "commit", func(tx *sql.Tx) ([]store.Wake, error) {
		facts, err := s.facts(ctx, tx, plan.NeedsOf(writes))
		if err != nil {
			return nil, err
		}
		var commit *plan.Commit
		commit, errs = plan.ForCommit(writes, facts)
		if err := s.apply(ctx, tx, commit); err != nil {
			return nil, err
		}
		return tables.WithJobs(commit.Wakes, commit.Jobs), insertDeliveries(ctx, tx, commit.Turns, facts.Now)
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// Statements of a commit that has only events, as the commit of each token does.
const (
	selectSession = "select " + tables.SessionColumns + " from sessions s where tenant = ? and session = ?"
	insertEvent   = "insert into events (tenant, session, seq, first_seq, turn, body) values (?, ?, ?, ?, ?, ?)"
	// advanceSession does not compute whether the session has work: that is costly
	// for each token, and events alone do not change it.
	advanceSession = "update sessions set update_time = ?, last_seq = ? where tenant = ? and session = ?"
)

// facts reads what decides about the writes.
func (s *Store) facts(ctx context.Context, tx *sql.Tx, n plan.Needs) (plan.Facts, error) {
	f := plan.Facts{
		Now: s.db.clock(), Sessions: map[store.Key]*plan.Session{},
		Turns: map[plan.ID]struct{}{}, Messages: map[plan.ID]int64{},
	}
	for _, k := range n.Sessions {
		row, err := tables.ScanSession(sqlite.Row(tx.QueryRowContext(ctx, selectSession, k.Tenant, k.Session)))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return f, err
		}
		f.Sessions[k] = row
	}
	q := s.sql(tx)
	for _, id := range n.Turns {
		found, err := sqldb.Collect(ctx, q, sqldb.Value[int64],
			"select number from turns where tenant = $1 and session = $2 and turn = $3", id.Tenant, id.Session, id.ID)
		if err != nil {
			return f, err
		}
		if len(found) > 0 {
			f.Turns[id] = struct{}{}
		}
	}
	for _, id := range n.Messages {
		found, err := sqldb.Collect(ctx, q, sqldb.Value[int64],
			"select depth from messages where tenant = $1 and session = $2 and message = $3", id.Tenant, id.Session, id.ID)
		if err != nil {
			return f, err
		}
		if len(found) > 0 {
			f.Messages[id] = found[0]
		}
	}
	var err error
	f.Budgets, err = budgetFacts(ctx, q, n.Budgets)
	return f, err
}

// apply writes a planned commit.
func (s *Store) apply(ctx context.Context, tx *sql.Tx, c *plan.Commit) error {
	if err := each(ctx, tx, insertEvent, c.Events, eventArgs); err != nil {
		return err
	}
	if err := insertMessages(ctx, tx, c.Messages); err != nil {
		return err
	}
	if err := each(ctx, tx, "update turns set state = ?, body = ?, run = ? where tenant = ? and session = ? and turn = ?",
		c.Turns, func(t plan.Turn) []any {
			return []any{t.State, t.Body, t.Run, t.Tenant, t.Session, t.ID}
		}); err != nil {
		return err
	}
	if err := each(ctx, tx, "delete from inbox where tenant = ? and session = ? and id = ?",
		c.Consume, func(id plan.CommandID) []any { return []any{id.Tenant, id.Session, id.ID} }); err != nil {
		return err
	}
	if err := applyCalls(ctx, tx, c); err != nil {
		return err
	}
	if err := applyBudgets(ctx, tx, c.Budgets); err != nil {
		return err
	}
	if err := insertJobs(ctx, tx, c.Jobs); err != nil {
		return err
	}
	if _, err := s.sql(tx).Send(ctx, tables.Rare(c)...); err != nil {
		return err
	}
	if err := each(ctx, tx, advanceSession, c.Advanced, func(s *plan.Session) []any {
		return []any{micros(s.UpdateTime), s.LastSeq, s.Tenant, s.Session}
	}); err != nil {
		return err
	}
	return each(ctx, tx, `
		update sessions set update_time = ?, last_seq = ?, head = ?, active_turn = ?,
			input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, thinking_tokens = ?, cost_nano_usd = ?,
			finished_turns = ?, claims = ?,
			runnable = exists (select 1 from inbox i where i.tenant = sessions.tenant and i.session = sessions.session)
				or ? <> '' and not exists (select 1 from turns t where t.tenant = sessions.tenant and t.session = sessions.session and t.turn = ? and t.state = ?)
		where tenant = ? and session = ?`,
		c.Sessions, func(s *plan.Session) []any {
			return []any{
				micros(s.UpdateTime), s.LastSeq, s.Head, s.ActiveTurn,
				s.Usage.Input, s.Usage.Output, s.Usage.CacheRead, s.Usage.CacheWrite, s.Usage.Thinking, s.Usage.CostNanoUSD,
				s.FinishedTurns, s.Lease.Claims, s.ActiveTurn, s.ActiveTurn, sessionv1.TurnState_TURN_STATE_WAITING, s.Tenant, s.Session,
			}
		})
}

// applyCalls changes which calls wait. A call that waits for the same answer
// again keeps an answer that it already has.
func applyCalls(ctx context.Context, tx *sql.Tx, c *plan.Commit) error {
	if err := each(ctx, tx, "delete from pending_calls where tenant = ? and session = ? and call = ?",
		c.Waited, func(id plan.ID) []any { return []any{id.Tenant, id.Session, id.ID} }); err != nil {
		return err
	}
	if err := each(ctx, tx, "delete from jobs where tenant = ? and kind = ? and job = ?",
		c.Waited, func(id plan.ID) []any {
			return []any{id.Tenant, string(store.JobExpire), store.ExpiryID(id.Session, id.ID)}
		}); err != nil {
		return err
	}
	return each(ctx, tx, `
		insert into pending_calls (tenant, session, call, turn, answer, digest, user_name, create_time, shown) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict do update set turn = excluded.turn, answer = excluded.answer, digest = excluded.digest,
			user_name = excluded.user_name, shown = excluded.shown,
			create_time = iif(answer = excluded.answer and digest = excluded.digest, create_time, excluded.create_time),
			answered = answered and answer = excluded.answer and digest = excluded.digest`,
		c.Wait, func(p plan.PendingCall) []any {
			return []any{p.Tenant, p.Session, p.CallID, p.TurnID, string(p.Answer), p.Digest, p.User, micros(p.Time), p.Body}
		})
}

func eventArgs(e plan.Event) []any {
	return []any{e.Tenant, e.Session, e.Seq, e.FirstSeq, e.Turn, e.Body}
}

func insertMessages(ctx context.Context, tx *sql.Tx, messages []plan.Message) error {
	return each(ctx, tx, "insert into messages (tenant, session, message, parent, depth, body) values (?, ?, ?, ?, ?, ?)",
		messages, func(m plan.Message) []any { return []any{m.Tenant, m.Session, m.ID, m.Parent, m.Depth, m.Body} })
}

// each executes a statement for every row.
func each[T any](ctx context.Context, tx *sql.Tx, query string, rows []T, args func(T) []any) error {
	for _, row := range rows {
		if _, err := tx.ExecContext(ctx, query, args(row)...); err != nil {
			return err
		}
	}
	return nil
}
