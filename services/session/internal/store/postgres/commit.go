package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// Commit implements store.Store. It takes two round trips for any number of
// writes: the first locks the sessions and reads what decides, the second writes
// every table with one statement.
func (s *Store) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	var facts plan.Facts
	var errs []error
	var jobs []store.Job
	needs := plan.NeedsOf(writes)
	read := func(b *pgx.Batch) {
		facts = plan.Facts{
			Sessions: map[store.Key]*plan.Session{},
			Turns:    map[plan.ID]struct{}{}, Messages: map[plan.ID]int64{},
		}
		queueFacts(b, needs, &facts)
	}
	err := fail("commit", pg.InTwo(ctx, s.db.pool, read, func(c *pgx.Conn, b *pgx.Batch) error {
		facts.Now = facts.Now.UTC()
		var commit *plan.Commit
		commit, errs = plan.ForCommit(writes, facts)
		jobs = commit.Jobs
		if commit.Empty() {
			return nil
		}
		if len(commit.Events) < manyEvents {
			queueEvents(b, commit.Events)
		} else if err := copyEvents(ctx, c, commit.Events); err != nil {
			return err
		}
		queueCommit(b, commit)
		queueNotify(b, commit.Wakes...)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	s.db.wakes.Send(tables.WithJobs(nil, jobs)...)
	return errs, nil
}

// queueFacts locks the sessions and reads what decides about the writes. The
// later statements of a batch see the changes that the first one waited for.
func queueFacts(b *pgx.Batch, n plan.Needs, f *plan.Facts) {
	tenants, sessions := splitKeys(n.Sessions)
	b.Queue("select "+tables.SessionColumns+` from sessions s
		where (tenant, session) in (select * from unnest($1::text[], $2::text[]))
		order by tenant, session for no key update`, tenants, sessions).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*plan.Session, error) { return tables.ScanSession(pg.Row(r)) })
		for _, row := range all {
			f.Sessions[row.Key] = row
		}
		return err
	})
	queueLookup(b, n.Turns, "select tenant, session, turn, number from turns where (tenant, session, turn)",
		func(id plan.ID, _ int64) { f.Turns[id] = struct{}{} })
	queueLookup(b, n.Messages, "select tenant, session, message, depth from messages where (tenant, session, message)",
		func(id plan.ID, depth int64) { f.Messages[id] = depth })
	queueBudgetNeeds(b, n.Budgets, &f.Budgets)
	b.Queue("select clock_timestamp()").QueryRow(func(row pgx.Row) error { return row.Scan(&f.Now) })
}

// queueLookup reads rows by their keys.
func queueLookup(b *pgx.Batch, ids []plan.ID, query string, found func(id plan.ID, n int64)) {
	if len(ids) == 0 {
		return
	}
	tenants, sessions, names := splitIDs(ids)
	b.Queue(query+" in (select * from unnest($1::text[], $2::text[], $3::text[]))", tenants, sessions, names).Query(func(rows pgx.Rows) error {
		var id plan.ID
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&id.Tenant, &id.Session, &id.ID, &n}, func() error {
			found(id, n)
			return nil
		})
		return err
	})
}

func splitIDs(ids []plan.ID) (tenants, sessions, names []string) {
	for _, id := range ids {
		tenants, sessions, names = append(tenants, id.Tenant), append(sessions, id.Session), append(names, id.ID)
	}
	return tenants, sessions, names
}

// queueCommit writes a planned commit without its events. The sessions come last, because whether
// they have work depends on the rest.
func queueCommit(b *pgx.Batch, c *plan.Commit) {
	queueMessages(b, c.Messages)
	queueTurns(b, c.Turns)
	queueConsume(b, c.Consume)
	queueCalls(b, c)
	queueBudgets(b, c.Budgets)
	queueJobs(b, c.Jobs)
	queueDeliveries(b, c.Turns)
	for _, st := range tables.Rare(c) {
		b.Queue(st.Query, st.Args...)
	}
	queueSessions(b, c.Sessions)
	queueAdvanced(b, c.Advanced)
}

// manyEvents is the number of events from which on COPY is cheaper than a
// statement with arrays, though it takes round trips of its own.
const manyEvents = 2048

// copyEvents writes many events.
func copyEvents(ctx context.Context, c *pgx.Conn, events []plan.Event) error {
	rows := pgx.CopyFromSlice(len(events), func(i int) ([]any, error) {
		e := events[i]
		return []any{e.Tenant, e.Session, e.Seq, e.FirstSeq, e.Turn, e.Body}, nil
	})
	_, err := c.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"tenant", "session", "seq", "first_seq", "turn", "body"}, rows)
	return err
}

func queueEvents(b *pgx.Batch, events []plan.Event) {
	if len(events) == 0 {
		return
	}
	var tenants, sessions, turns []string
	var seqs, firsts []int64
	var bodies [][]byte
	for _, e := range events {
		tenants, sessions, turns = append(tenants, e.Tenant), append(sessions, e.Session), append(turns, e.Turn)
		seqs, firsts, bodies = append(seqs, e.Seq), append(firsts, e.FirstSeq), append(bodies, e.Body)
	}
	b.Queue(`insert into events (tenant, session, seq, first_seq, turn, body)
		select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])`,
		tenants, sessions, seqs, firsts, turns, bodies)
}

func queueMessages(b *pgx.Batch, messages []plan.Message) {
	if len(messages) == 0 {
		return
	}
	var tenants, sessions, ids, parents []string
	var depths []int64
	var bodies [][]byte
	for _, m := range messages {
		tenants, sessions, ids = append(tenants, m.Tenant), append(sessions, m.Session), append(ids, m.ID)
		parents, depths, bodies = append(parents, m.Parent), append(depths, m.Depth), append(bodies, m.Body)
	}
	b.Queue(`insert into messages (tenant, session, message, parent, depth, body)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])`,
		tenants, sessions, ids, parents, depths, bodies)
}

func queueTurns(b *pgx.Batch, turns []plan.Turn) {
	if len(turns) == 0 {
		return
	}
	var tenants, sessions, ids []string
	var states []int32
	var bodies, runs [][]byte
	for _, t := range turns {
		tenants, sessions, ids = append(tenants, t.Tenant), append(sessions, t.Session), append(ids, t.ID)
		states, bodies, runs = append(states, int32(t.State)), append(bodies, t.Body), append(runs, t.Run)
	}
	b.Queue(`update turns t set state = n.state, body = n.body, run = n.run
		from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bytea[], $6::bytea[]) as n (tenant, session, turn, state, body, run)
		where t.tenant = n.tenant and t.session = n.session and t.turn = n.turn`,
		tenants, sessions, ids, states, bodies, runs)
}

func queueConsume(b *pgx.Batch, consume []plan.CommandID) {
	if len(consume) == 0 {
		return
	}
	var tenants, sessions []string
	var ids []int64
	for _, c := range consume {
		tenants, sessions, ids = append(tenants, c.Tenant), append(sessions, c.Session), append(ids, c.ID)
	}
	b.Queue(`delete from inbox where (tenant, session, id) in (select * from unnest($1::text[], $2::text[], $3::bigint[]))`,
		tenants, sessions, ids)
}

// queueCalls changes which calls wait. A call that waits for the same answer
// again keeps an answer that it already has.
func queueCalls(b *pgx.Batch, c *plan.Commit) {
	if len(c.Waited) > 0 {
		tenants, sessions, calls := splitIDs(c.Waited)
		b.Queue("delete from pending_calls where (tenant, session, call) in (select * from unnest($1::text[], $2::text[], $3::text[]))",
			tenants, sessions, calls)
		jobs := make([]string, len(calls))
		for i := range calls {
			jobs[i] = store.ExpiryID(sessions[i], calls[i])
		}
		b.Queue("delete from jobs where kind = $1 and (tenant, job) in (select * from unnest($2::text[], $3::text[]))", store.JobExpire, tenants, jobs)
	}
	if len(c.Wait) == 0 {
		return
	}
	var tenants, sessions, calls, turns, answers, digests, users []string
	var times []time.Time
	var shown [][]byte
	for _, p := range c.Wait {
		tenants, sessions, calls = append(tenants, p.Tenant), append(sessions, p.Session), append(calls, p.CallID)
		turns, answers, digests = append(turns, p.TurnID), append(answers, string(p.Answer)), append(digests, p.Digest)
		users, times, shown = append(users, p.User), append(times, p.Time), append(shown, p.Body)
	}
	b.Queue(`insert into pending_calls as old (tenant, session, call, turn, answer, digest, user_name, create_time, shown)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::bytea[])
		on conflict (tenant, session, call) do update set turn = excluded.turn, answer = excluded.answer, digest = excluded.digest,
			user_name = excluded.user_name, shown = excluded.shown,
			create_time = case when old.answer = excluded.answer and old.digest = excluded.digest then old.create_time else excluded.create_time end,
			answered = old.answered and old.answer = excluded.answer and old.digest = excluded.digest`,
		tenants, sessions, calls, turns, answers, digests, users, times, shown)
}

// queueAdvanced moves the ends of logs. It does not compute whether the session
// has work: that is costly for each token, and events alone do not change it.
func queueAdvanced(b *pgx.Batch, rows []*plan.Session) {
	if len(rows) == 0 {
		return
	}
	var tenants, sessions []string
	var updated []time.Time
	var seqs []int64
	for _, s := range rows {
		tenants, sessions = append(tenants, s.Tenant), append(sessions, s.Session)
		updated, seqs = append(updated, s.UpdateTime), append(seqs, s.LastSeq)
	}
	b.Queue(`update sessions s set update_time = n.update_time, last_seq = n.last_seq
		from unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[]) as n (tenant, session, update_time, last_seq)
		where s.tenant = n.tenant and s.session = n.session`,
		tenants, sessions, updated, seqs)
}

func queueSessions(b *pgx.Batch, rows []*plan.Session) {
	if len(rows) == 0 {
		return
	}
	var tenants, sessions, heads, actives []string
	var updated []time.Time
	var seqs, in, out, read, write, thinking, cost []int64
	var finished, claims []int32
	for _, s := range rows {
		tenants, sessions = append(tenants, s.Tenant), append(sessions, s.Session)
		heads, actives = append(heads, s.Head), append(actives, s.ActiveTurn)
		updated, seqs = append(updated, s.UpdateTime), append(seqs, s.LastSeq)
		in, out = append(in, s.Usage.Input), append(out, s.Usage.Output)
		read, write = append(read, s.Usage.CacheRead), append(write, s.Usage.CacheWrite)
		thinking, cost = append(thinking, s.Usage.Thinking), append(cost, s.Usage.CostNanoUSD)
		finished, claims = append(finished, s.FinishedTurns), append(claims, int32(s.Lease.Claims))
	}
	b.Queue(`update sessions s set update_time = n.update_time, last_seq = n.last_seq, head = n.head, active_turn = n.active_turn,
			input_tokens = n.input, output_tokens = n.output, cache_read_tokens = n.cache_read, cache_write_tokens = n.cache_write,
			thinking_tokens = n.thinking, cost_nano_usd = n.cost, finished_turns = n.finished_turns, claims = n.claims,
			runnable = exists (select 1 from inbox i where i.tenant = n.tenant and i.session = n.session)
				or n.active_turn <> '' and not exists (select 1 from turns t
					where t.tenant = n.tenant and t.session = n.session and t.turn = n.active_turn and t.state = $15)
		from unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[],
			$7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::int[], $14::int[])
			as n (tenant, session, update_time, last_seq, head, active_turn,
				input, output, cache_read, cache_write, thinking, cost, finished_turns, claims)
		where s.tenant = n.tenant and s.session = n.session`,
		tenants, sessions, updated, seqs, heads, actives, in, out, read, write, thinking, cost, finished, claims, waiting)
}

// waiting is the state of a turn that has no work.
const waiting = int32(sessionv1.TurnState_TURN_STATE_WAITING)
