package tables

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

type workQueues struct{ db DB }

// A session whose item was stopped while its turn is active has a new item.
const (
	workAgain = "(w.session is null or w.state = 'stopped' and s.active_turn <> '')"
	// workFree is the condition under which a worker may have an item. Its arguments are the time before which an
	// item was given out to be given out again, and now.
	workFree = "(" + workAgain + " or w.state = 'queued' and (w.poll_time is null or w.poll_time <= ?) or w.state in ('starting', 'active', 'stopping') and w.lease_end <= ?)"
	workFrom = ` from session_labels l join sessions s on s.tenant = l.tenant and s.session = l.session
		left join work w on w.tenant = s.tenant and w.session = s.session where l.tenant = $1`
	workColumns = `s.session, s.update_time, s.active_turn, coalesce(w.number, 0), coalesce(w.state, ''), coalesce(w.worker, ''), w.metadata, w.create_time, w.poll_time,
		w.acknowledge_time, w.start_time, w.heartbeat_time, coalesce(w.ttl, 0), w.lease_end, w.stop_request_time, w.stop_time`
)

// scanWork reads the current item of a session.
func scanWork(q store.WorkQueue) func(r sqldb.Row) (*store.Work, error) {
	return func(r sqldb.Row) (*store.Work, error) {
		w := &store.Work{Tenant: q.Tenant, Environment: q.Environment}
		var update time.Time
		var create *time.Time
		var active, state string
		var ttl int64
		err := r.Scan(&w.Session, &update, &active, &w.Number, &state, &w.Worker, &w.Metadata, &create, &w.PollTime, &w.AcknowledgeTime, &w.StartTime, &w.HeartbeatTime,
			&ttl, &w.LeaseEnd, &w.StopRequestTime, &w.StopTime)
		if err != nil {
			return nil, err
		}
		if w.State, w.TTL = store.WorkState(state), time.Duration(ttl); create != nil {
			w.CreateTime = *create
		}
		if w.Number == 0 || w.State == store.WorkStopped && active != "" {
			w = &store.Work{Tenant: q.Tenant, Environment: q.Environment, Session: w.Session, Number: w.Number + 1, State: store.WorkQueued, CreateTime: update}
		}
		return w, nil
	}
}

// inQueue selects the sessions of a queue that have or had an item.
func inQueue(columns string, q store.WorkQueue) *query {
	f := filter("select "+columns+workFrom, q.Tenant)
	f.and("l.name = ? and l.value = ?", store.WorkLabel, q.Environment)
	f.and("(s.active_turn <> '' or w.session is not null)")
	if q.User != "" {
		f.and("s.user_id = ?", q.User)
	}
	return f
}

// write changes a queue in a transaction, one at a time.
func (t workQueues) write(ctx context.Context, what string, q store.WorkQueue, f func(tx Tx, now time.Time) error) error {
	return t.db.Write(ctx, what, func(tx Tx) ([]store.Wake, error) {
		if err := tx.Lock(ctx, "work\x01"+q.Tenant+"\x01"+q.Environment); err != nil {
			return nil, err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
}

// PollWork implements store.WorkQueues.
func (t workQueues) PollWork(ctx context.Context, p store.WorkPoll) (found *store.Work, err error) {
	err = t.write(ctx, "poll work", p.WorkQueue, func(tx Tx, now time.Time) error {
		q := inQueue(workColumns, p.WorkQueue)
		q.and("s.active_turn <> '' and s.archive_time is null")
		q.and(workFree, now.Add(-p.Reclaim), now)
		w, err := scanWork(p.WorkQueue)(tx.QueryRow(ctx, q.ordered("s.update_time, s.session", 1), q.args...))
		if err != nil {
			return err
		}
		found = &store.Work{
			Tenant: w.Tenant, Environment: w.Environment, Session: w.Session, Number: w.Number, State: store.WorkQueued, Worker: p.Worker, Metadata: w.Metadata,
			CreateTime: w.CreateTime, PollTime: &now,
		}
		return putWork(ctx, tx, found)
	})
	return found, err
}

// putWork writes the row of an item.
func putWork(ctx context.Context, tx Tx, w *store.Work) error {
	_, err := tx.Exec(ctx, `
		insert into work (tenant, session, number, state, worker, metadata, create_time, poll_time, acknowledge_time, start_time, heartbeat_time, ttl, lease_end, stop_request_time, stop_time)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		on conflict (tenant, session) do update set number = excluded.number, state = excluded.state, worker = excluded.worker, metadata = excluded.metadata,
			create_time = excluded.create_time, poll_time = excluded.poll_time, acknowledge_time = excluded.acknowledge_time, start_time = excluded.start_time,
			heartbeat_time = excluded.heartbeat_time, ttl = excluded.ttl, lease_end = excluded.lease_end, stop_request_time = excluded.stop_request_time, stop_time = excluded.stop_time`,
		w.Tenant, w.Session, w.Number, string(w.State), w.Worker, append([]byte{}, w.Metadata...), w.CreateTime, w.PollTime, w.AcknowledgeTime, w.StartTime, w.HeartbeatTime,
		int64(w.TTL), w.LeaseEnd, w.StopRequestTime, w.StopTime)
	return err
}

// currentWork reads the current item of a session.
func currentWork(ctx context.Context, db sqldb.Queryer, q store.WorkQueue, session string, number int64) (*store.Work, error) {
	f := inQueue(workColumns, q)
	f.and("s.session = ?", session)
	w, err := scanWork(q)(db.QueryRow(ctx, f.ordered("s.session", 1), f.args...))
	if err == nil && w.Number != number {
		err = store.ErrNotFound
	}
	return w, err
}

// GetWork implements store.WorkQueues.
func (t workQueues) GetWork(ctx context.Context, q store.WorkQueue, session string, number int64) (*store.Work, error) {
	w, err := currentWork(ctx, t.db.Reader(), q, session, number)
	return w, t.db.Fail("get work", err)
}

// ChangeWork implements store.WorkQueues.
func (t workQueues) ChangeWork(ctx context.Context, q store.WorkQueue, session string, number int64, f func(w *store.Work, now time.Time) error) (out *store.Work, err error) {
	err = t.write(ctx, "change work", q, func(tx Tx, now time.Time) error {
		w, err := currentWork(ctx, tx, q, session, number)
		if err != nil {
			return err
		}
		if err := f(w, now); err != nil {
			return err
		}
		out = w
		return putWork(ctx, tx, w)
	})
	return out, err
}

// ListWork implements store.WorkQueues.
func (t workQueues) ListWork(ctx context.Context, q store.WorkQueue, after string, limit int) ([]*store.Work, error) {
	f := inQueue(workColumns, q)
	f.and("s.session > ?", after)
	statement := f.ordered("s.session", limit)
	all, err := sqldb.Collect(ctx, t.db.Reader(), scanWork(q), statement, f.args...)
	return all, t.db.Fail("list work", err)
}

// CountWork implements store.WorkQueues.
func (t workQueues) CountWork(ctx context.Context, q store.WorkQueue) (out store.WorkStats, err error) {
	waits := inQueue("count(*), min(s.update_time)", q)
	waits.and("s.active_turn <> '' and (" + workAgain + " or w.state = 'queued' and w.poll_time is null or w.state in ('starting', 'active', 'stopping') and w.lease_end <= clock_timestamp())")
	if err := t.db.Reader().QueryRow(ctx, waits.text, waits.args...).Scan(&out.Depth, &out.Oldest); err != nil {
		return out, t.db.Fail("count work", err)
	}
	given := inQueue("count(*)", q)
	given.and("w.state = 'queued' and w.poll_time is not null")
	return out, t.db.Fail("count work", t.db.Reader().QueryRow(ctx, given.text, given.args...).Scan(&out.Pending))
}
