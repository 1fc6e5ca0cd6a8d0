package sqlite

import (
	"context"
	"database/sql"
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Submit implements store.Store.
func (s *Store) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "submit "+string(n.Command.Kind), func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		row, err := sessionRow(ctx, tx, n.Key)
		if err != nil {
			return nil, err
		}
		if old, err := recall(ctx, tx, n.Tenant, n.Request, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		st := backend.InboxState{Session: row, Now: now}
		if st.Queued, st.FirstQueued, err = queuedTurns(ctx, tx, n.Key); err != nil {
			return nil, err
		}
		if n.Resume {
			if st.Last, err = lastState(ctx, tx, n.Key); err != nil {
				return nil, err
			}
		}
		if st.Pending, st.Answered, err = pendingCall(ctx, tx, n.Key, n.Command.CallID); err != nil {
			return nil, err
		}
		if backend.NeedsInbox(n, st.Answered) {
			if st.Commands, err = commands(ctx, tx, n.Key); err != nil {
				return nil, err
			}
		}
		plan, err := backend.PlanSubmit(n, st)
		if err != nil {
			return nil, err
		}
		answer.Value = plan.Value
		if err := remember(ctx, tx, n.Tenant, n.Session, n.Request, plan.Value, now); err != nil {
			return nil, err
		}
		if len(plan.Commands) == 0 {
			return nil, nil
		}
		return []store.Wake{{Key: n.Key, Kind: store.WakeInbox}}, putSubmission(ctx, tx, row, plan, micros(now))
	})
	return backend.Answered(answer, err)
}

// queuedTurns counts the queued turns and returns the oldest.
func queuedTurns(ctx context.Context, q queryer, k store.Key) (n int, first string, err error) {
	err = q.QueryRowContext(ctx, `
		select count(*), coalesce((select turn from turns where tenant = ?1 and session = ?2 and state = ?3 order by number limit 1), '')
		from turns where tenant = ?1 and session = ?2 and state = ?3`,
		k.Tenant, k.Session, sessionv1.TurnState_TURN_STATE_QUEUED).Scan(&n, &first)
	return n, first, err
}

// lastState returns the state of the turn that was accepted last.
func lastState(ctx context.Context, q queryer, k store.Key) (state sessionv1.TurnState, err error) {
	err = q.QueryRowContext(ctx, "select state from turns where tenant = ? and session = ? order by number desc limit 1",
		k.Tenant, k.Session).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return state, nil
	}
	return state, err
}

// pendingCall reads the waiting call with this id; nil if there is none.
func pendingCall(ctx context.Context, q queryer, k store.Key, call string) (*store.PendingCall, bool, error) {
	if call == "" {
		return nil, false, nil
	}
	p := &store.PendingCall{CallID: call}
	var answered bool
	err := q.QueryRowContext(ctx,
		"select turn, answer, digest, answered from pending_calls where tenant = ? and session = ? and call = ?",
		k.Tenant, k.Session, call).Scan(&p.TurnID, &p.Answer, &p.Digest, &answered)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return p, answered, err
}

func putSubmission(ctx context.Context, tx *sql.Tx, row *backend.Session, plan *backend.Submission, now int64) error {
	for _, c := range plan.Commands {
		if _, err := tx.ExecContext(ctx, `
			insert into inbox (tenant, session, id, kind, turn, call, target, user_name, body, create_time)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			row.Tenant, row.Session, c.ID, string(c.Kind), c.TurnID, c.CallID, c.Target, c.User, c.Body, micros(c.Time)); err != nil {
			return err
		}
	}
	if t := plan.Turn; t != nil {
		res, err := tx.ExecContext(ctx, `
			insert into turns (tenant, session, turn, number, state, body, run) values (?, ?, ?, ?, ?, ?, ?)
			on conflict do nothing`,
			t.Tenant, t.Session, t.ID, t.Number, t.State, t.Body, t.Run)
		if err != nil {
			return err
		}
		if made, err := res.RowsAffected(); err != nil || made == 0 {
			return errors.Join(err, store.ErrExists)
		}
	}
	if plan.Answered != "" {
		if _, err := tx.ExecContext(ctx,
			"update pending_calls set answered = 1 where tenant = ? and session = ? and call = ?",
			row.Tenant, row.Session, plan.Answered); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `
		update sessions set next_command = ?, next_turn = ?, update_time = ?, runnable = 1,
			ready_time = case when runnable = 1 then ready_time else ? end
		where tenant = ? and session = ?`,
		row.NextCommand, row.NextTurn, now, now, row.Tenant, row.Session)
	return err
}

// commands reads a session's inbox.
func commands(ctx context.Context, q queryer, k store.Key) ([]store.Command, error) {
	return collect(ctx, q, func(r *sql.Rows) (store.Command, error) {
		var c store.Command
		var at int64
		err := r.Scan(&c.ID, &c.Kind, &c.TurnID, &c.CallID, &c.Target, &c.User, &c.Body, &at)
		c.Time = fromMicros(at)
		return c, err
	}, "select id, kind, turn, call, target, user_name, body, create_time from inbox where tenant = ? and session = ? order by id",
		k.Tenant, k.Session)
}
