package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// Submit implements store.Store.
func (s *Store) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "submit "+string(n.Command.Kind), func(tx pgx.Tx) (err error) {
		answer, err = submit(ctx, tx, n)
		return err
	})
	return backend.Answered(answer, err)
}

func submit(ctx context.Context, tx pgx.Tx, n store.Submit) (store.Answer, error) {
	row, err := sessionRow(ctx, tx, n.Key, forUpdate)
	if err != nil {
		return store.Answer{}, err
	}
	if old, err := recall(ctx, tx, n.Tenant, n.Request); err != nil {
		return store.Answer{}, err
	} else if old != nil {
		return *old, nil
	}
	st := backend.InboxState{Session: row}
	if st.Now, err = dbNow(ctx, tx); err != nil {
		return store.Answer{}, err
	}
	if st.Queued, st.FirstQueued, err = queuedTurns(ctx, tx, n.Key); err != nil {
		return store.Answer{}, err
	}
	if n.Resume {
		if st.Last, err = lastState(ctx, tx, n.Key); err != nil {
			return store.Answer{}, err
		}
	}
	if st.Pending, st.Answered, err = pendingCall(ctx, tx, n.Key, n.Command.CallID); err != nil {
		return store.Answer{}, err
	}
	if backend.NeedsInbox(n, st.Answered) {
		if st.Commands, err = commands(ctx, tx, n.Key); err != nil {
			return store.Answer{}, err
		}
	}
	plan, err := backend.PlanSubmit(n, st)
	if err != nil {
		return store.Answer{}, err
	}
	answer, err := remember(ctx, tx, n.Tenant, n.Session, n.Request, plan.Value)
	if err != nil || answer.Replayed || len(plan.Commands) == 0 {
		return answer, err
	}
	return answer, putSubmission(ctx, tx, st, plan)
}

// queuedTurns counts the queued turns and returns the oldest.
func queuedTurns(ctx context.Context, q queryer, k store.Key) (n int, first string, err error) {
	err = q.QueryRow(ctx, `
		select count(*), coalesce((select turn from turns where tenant = $1 and session = $2 and state = 1 order by number limit 1), '')
		from turns where tenant = $1 and session = $2 and state = 1`, // QUEUED; a constant, for the index
		k.Tenant, k.Session).Scan(&n, &first)
	return n, first, err
}

// lastState returns the state of the turn that was accepted last.
func lastState(ctx context.Context, q queryer, k store.Key) (sessionv1.TurnState, error) {
	var state int32
	err := q.QueryRow(ctx, "select state from turns where tenant = $1 and session = $2 order by number desc limit 1",
		k.Tenant, k.Session).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return sessionv1.TurnState(state), err
}

// pendingCall reads the waiting call with this id; nil if there is none.
func pendingCall(ctx context.Context, q queryer, k store.Key, call string) (*store.PendingCall, bool, error) {
	if call == "" {
		return nil, false, nil
	}
	p := &store.PendingCall{CallID: call}
	var answered bool
	err := q.QueryRow(ctx,
		"select turn, answer, digest, answered from pending_calls where tenant = $1 and session = $2 and call = $3",
		k.Tenant, k.Session, call).Scan(&p.TurnID, &p.Answer, &p.Digest, &answered)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return p, answered, err
}

func putSubmission(ctx context.Context, tx pgx.Tx, st backend.InboxState, plan *backend.Submission) error {
	row := st.Session
	b := &pgx.Batch{}
	for _, c := range plan.Commands {
		b.Queue(`
			insert into inbox (tenant, session, id, kind, turn, call, target, user_name, body, create_time)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			row.Tenant, row.Session, c.ID, c.Kind, c.TurnID, c.CallID, c.Target, c.User, c.Body, c.Time)
	}
	if t := plan.Turn; t != nil {
		b.Queue("insert into turns (tenant, session, turn, number, state, body, run) values ($1, $2, $3, $4, $5, $6, $7)",
			t.Tenant, t.Session, t.ID, t.Number, int32(t.State), t.Body, t.Run)
	}
	if plan.Answered != "" {
		b.Queue("update pending_calls set answered = true where tenant = $1 and session = $2 and call = $3",
			row.Tenant, row.Session, plan.Answered)
	}
	b.Queue(`
		update sessions set next_command = $3, next_turn = $4, update_time = $5, runnable = true,
			ready_time = case when runnable then ready_time else $5 end
		where tenant = $1 and session = $2`,
		row.Tenant, row.Session, row.NextCommand, row.NextTurn, st.Now)
	queueNotify(b, store.Wake{Key: row.Key, Kind: store.WakeInbox})
	err := tx.SendBatch(ctx, b).Close()
	if pg.Code(err) == uniqueViolation {
		return fmt.Errorf("turn %q: %w", plan.Value, store.ErrExists)
	}
	return err
}

// uniqueViolation is the SQLSTATE of a key that exists already.
const uniqueViolation = "23505"

// commands reads a session's inbox.
func commands(ctx context.Context, q queryer, k store.Key) ([]store.Command, error) {
	return collect(ctx, q, func(r pgx.CollectableRow) (store.Command, error) {
		var c store.Command
		err := r.Scan(&c.ID, &c.Kind, &c.TurnID, &c.CallID, &c.Target, &c.User, &c.Body, &c.Time)
		c.Time = c.Time.UTC()
		return c, err
	}, "select id, kind, turn, call, target, user_name, body, create_time from inbox where tenant = $1 and session = $2 order by id",
		k.Tenant, k.Session)
}

// waiting is the state of a turn that has no work.
const waiting = int32(sessionv1.TurnState_TURN_STATE_WAITING)
