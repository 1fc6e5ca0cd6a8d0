package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type inbox struct{ db DB }

// Submit implements store.Store.
func (t inbox) Submit(ctx context.Context, n store.Submit) (store.Answer, error) {
	var answer store.Answer
	err := t.db.Write(ctx, "submit "+string(n.Command.Kind), func(tx Tx) (wakes []store.Wake, err error) {
		answer, wakes, err = submit(ctx, tx, n)
		return wakes, err
	})
	return plan.Answered(answer, err)
}

func submit(ctx context.Context, tx Tx, n store.Submit) (store.Answer, []store.Wake, error) {
	row, err := sessionRow(ctx, tx, n.Key, forChange)
	if err != nil {
		return store.Answer{}, nil, err
	}
	if old, err := recall(ctx, tx, n.Tenant, n.Request); err != nil {
		return store.Answer{}, nil, err
	} else if old != nil {
		return *old, nil, nil
	}
	st, err := inboxState(ctx, tx, row, n)
	if err != nil {
		return store.Answer{}, nil, err
	}
	submission, err := plan.ForSubmit(n, st)
	if err == nil && plan.AddsTurn(n, st) {
		err = capped(ctx, tx, n.Tenant, countedTurns, n.Caps)
	}
	if err != nil {
		return store.Answer{}, nil, err
	}
	answer, err := remember(ctx, tx, request{n.Request, n.Tenant, n.Session, submission.Value})
	if err != nil || answer.Replayed || len(submission.Commands) == 0 {
		return answer, nil, err
	}
	claimed, err := putSubmission(ctx, tx, st, submission, n.Claim)
	if err != nil {
		return store.Answer{}, nil, err
	}
	if claimed {
		answer.Lease = &store.Lease{Key: row.Key, Epoch: row.Lease.Epoch + 1, Claims: 1}
		return answer, nil, nil
	}
	return answer, []store.Wake{{Key: row.Key, Kind: store.WakeInbox}}, nil
}

// takeIdle claims a session that nothing is to be done for, and for which no claim has failed.
func takeIdle(row *plan.Session, c store.Claimer) sqldb.Statement {
	return sqldb.S(`
		update sessions set epoch = epoch + 1, claims = 1, holder = $3, lease_until = clock_timestamp() + $4::interval
		where tenant = $1 and session = $2 and lease_until is null and not runnable and claims = 0 and depth = 0
			and not fence_due and passed_until is null`,
		row.Tenant, row.Session, c.Replica, c.TTL)
}

// inboxState reads what decides about a command.
func inboxState(ctx context.Context, tx Tx, row *plan.Session, n store.Submit) (st plan.InboxState, err error) {
	st = plan.InboxState{Session: row}
	if st.Now, err = tx.Now(ctx); err != nil {
		return st, err
	}
	if st.Queued, st.FirstQueued, err = queuedTurns(ctx, tx, n.Key); err != nil {
		return st, err
	}
	if n.Resume {
		if st.Last, err = lastState(ctx, tx, n.Key); err != nil {
			return st, err
		}
	}
	if st.Pending, st.Answered, err = pendingCall(ctx, tx, n.Key, n.Command.CallID); err != nil {
		return st, err
	}
	if plan.NeedsInbox(n, st.Answered) {
		st.Commands, err = commands(ctx, tx, n.Key)
	}
	return st, err
}

// queuedTurns counts the queued turns and returns the oldest.
func queuedTurns(ctx context.Context, q sqldb.Queryer, k store.Key) (n int, first string, err error) {
	err = q.QueryRow(ctx, `
		select count(*), coalesce((select turn from turns where tenant = $1 and session = $2 and state = 1 order by number limit 1), '')
		from turns where tenant = $1 and session = $2 and state = 1`, // QUEUED; a constant, for the index
		k.Tenant, k.Session).Scan(&n, &first)
	return n, first, err
}

// lastCalls is how many calls lastState skips.
const lastCalls = 100

// lastState returns the state of the turn that was accepted last, calls not counted; unspecified if
// there is none, or none among the last turns.
func lastState(ctx context.Context, q sqldb.Queryer, k store.Key) (sessionv1.TurnState, error) {
	before := int64(math.MaxInt64)
	for range lastCalls {
		var body []byte
		err := q.QueryRow(ctx, "select number, body from turns where tenant = $1 and session = $2 and number < $3 order by number desc limit 1",
			k.Tenant, k.Session, before).Scan(&before, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		t, err := decode[sessionv1.Turn](body)
		if err != nil || t.Call == nil {
			return t.GetState(), err
		}
	}
	return 0, nil
}

// pendingCall reads the waiting call with this id; nil if there is none.
func pendingCall(ctx context.Context, q sqldb.Queryer, k store.Key, call string) (*store.PendingCall, bool, error) {
	if call == "" {
		return nil, false, nil
	}
	p := &store.PendingCall{CallID: call}
	var answered bool
	err := q.QueryRow(ctx,
		"select turn, answer, digest, answered from pending_calls where tenant = $1 and session = $2 and call = $3",
		k.Tenant, k.Session, call).Scan(&p.TurnID, &p.Answer, &p.Digest, &answered)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return p, answered, err
}

// putSubmission writes a submission, and reports whether it has claimed the session for c, which may be nil.
func putSubmission(ctx context.Context, tx Tx, st plan.InboxState, submission *plan.Submission, c *store.Claimer) (claimed bool, _ error) {
	row := st.Session
	var all []sqldb.Statement
	if t := submission.Turn; t != nil {
		all = append(all, sqldb.S(`
			insert into turns (tenant, session, turn, number, state, body, run) values ($1, $2, $3, $4, $5, $6, $7)
			on conflict do nothing`,
			t.Tenant, t.Session, t.ID, t.Number, int32(t.State), t.Body, t.Run))
	}
	for _, c := range submission.Commands {
		all = append(all, sqldb.S(`
			insert into inbox (tenant, session, id, kind, turn, call, target, user_name, body, create_time)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			row.Tenant, row.Session, c.ID, c.Kind, c.TurnID, c.CallID, c.Target, c.User, c.Body, c.Time))
	}
	if submission.Answered != "" {
		all = append(all, sqldb.S("update pending_calls set answered = true where tenant = $1 and session = $2 and call = $3",
			row.Tenant, row.Session, submission.Answered))
	}
	if c != nil {
		all = append(all, takeIdle(row, *c))
	}
	all = append(all, sqldb.S(`
		update sessions set next_command = $3, next_turn = $4, update_time = $5, runnable = true,
			ready_time = case when runnable then ready_time else $5 end
		where tenant = $1 and session = $2`,
		row.Tenant, row.Session, row.NextCommand, row.NextTurn, st.Now))
	n, err := tx.Send(ctx, all...)
	if err != nil {
		return false, err
	}
	if submission.Turn != nil && n[0] == 0 {
		return false, fmt.Errorf("turn %q: %w", submission.Value, store.ErrExists)
	}
	return c != nil && n[len(n)-2] > 0, nil
}

// commands reads a session's inbox.
func commands(ctx context.Context, q sqldb.Queryer, k store.Key) ([]store.Command, error) {
	return sqldb.Collect(ctx, q, func(r sqldb.Row) (c store.Command, err error) {
		return c, r.Scan(&c.ID, &c.Kind, &c.TurnID, &c.CallID, &c.Target, &c.User, &c.Body, &c.Time)
	}, "select id, kind, turn, call, target, user_name, body, create_time from inbox where tenant = $1 and session = $2 order by id",
		k.Tenant, k.Session)
}
