package tables

import (
	"context"
	"database/sql"
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type sessions struct{ db DB }

// SessionColumns are the columns that ScanSession reads, of sessions s.
const SessionColumns = `s.tenant, s.session, s.agent, s.agent_revision, s.body, s.create_time, s.update_time, s.last_seq, s.head, s.active_turn,
	s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.thinking_tokens, s.cost_nano_usd,
	s.finished_turns, s.epoch, s.lease_until is not null, s.claims, s.next_command, s.next_turn, s.user_id,
	s.session_key, s.archive_time, s.root`

func sessionFields(r *plan.Session) []any {
	return []any{
		&r.Tenant, &r.Session, &r.Agent, &r.AgentRevision, &r.Body, &r.CreateTime, &r.UpdateTime, &r.LastSeq, &r.Head, &r.ActiveTurn,
		&r.Usage.Input, &r.Usage.Output, &r.Usage.CacheRead, &r.Usage.CacheWrite, &r.Usage.Thinking, &r.Usage.CostNanoUSD,
		&r.FinishedTurns, &r.Lease.Epoch, &r.Lease.Held, &r.Lease.Claims, &r.NextCommand, &r.NextTurn, &r.User,
		&r.CallerKey, &r.ArchiveTime, &r.Root,
	}
}

// ScanSession reads SessionColumns.
func ScanSession(row sqldb.Row) (*plan.Session, error) {
	r := &plan.Session{}
	return r, row.Scan(sessionFields(r)...)
}

// shownColumns are the columns of a session that is shown.
const shownColumns = SessionColumns + `,
	exists (select 1 from inbox i where i.tenant = s.tenant and i.session = s.session and i.kind = 'rewind'),
	case when s.active_turn <> '' and ` + activeWaits + ` then 3 when s.active_turn <> '' or ` + hasQueued + ` then 2 else 1 end`

func scanShown(row sqldb.Row) (*sessionv1.Session, error) {
	r := &plan.Session{}
	if err := row.Scan(append(sessionFields(r), &r.Rewinding, &r.State)...); err != nil {
		return nil, err
	}
	return r.Proto()
}

// Locking clauses for a session's row. Claims, commits and submissions change it and exclude each other. They
// do not exclude transactions that only keep the session from being deleted, such as the indexing of a long
// conversation, which lock for key share. A deletion waits for these, too.
const (
	forKeyShare = " for key share"
	forChange   = " for no key update"
	forDelete   = " for update"
)

// SessionRow reads a session's row, or returns sql.ErrNoRows.
func SessionRow(ctx context.Context, q sqldb.Queryer, k store.Key) (*plan.Session, error) {
	return sessionRow(ctx, q, k, "")
}

func sessionRow(ctx context.Context, q sqldb.Queryer, k store.Key, lock string) (*plan.Session, error) {
	return ScanSession(q.QueryRow(ctx, "select "+SessionColumns+" from sessions s where tenant = $1 and session = $2"+lock, k.Tenant, k.Session))
}

// SessionExists returns sql.ErrNoRows for a session that does not exist.
func SessionExists(ctx context.Context, q sqldb.Queryer, k store.Key) error {
	return exists(ctx, q, k, "")
}

func exists(ctx context.Context, q sqldb.Queryer, k store.Key, lock string) error {
	var one int
	return q.QueryRow(ctx, "select 1 from sessions where tenant = $1 and session = $2"+lock, k.Tenant, k.Session).Scan(&one)
}

// CreateSession implements store.Store.
func (t sessions) CreateSession(ctx context.Context, n store.NewSession) (store.Answer, error) {
	return once(ctx, t.db, "create session", creating(n.Key, n.Request), nil, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := plan.ForCreate(n, now)
		if err != nil {
			return nil, err
		}
		if err := admitChild(ctx, tx, n.Child); err != nil {
			return nil, err
		}
		wakes, err := takeKey(ctx, tx, n)
		if err != nil {
			return nil, err
		}
		if err := capped(ctx, tx, n.Tenant, countedSessions, n.Caps); err != nil {
			return nil, err
		}
		if err := insertSession(ctx, tx, rows.Session); err != nil {
			return nil, err
		}
		if err := putSessionMCP(ctx, tx, rows.MCP); err != nil {
			return nil, err
		}
		wakes = append(wakes, store.Wake{Key: n.Key, Kind: store.WakeEvents})
		if err := tx.Insert(ctx, Rows{Messages: rows.Messages, Events: []plan.Event{rows.Event}, Jobs: rows.Jobs}); err != nil || n.First == nil {
			return wakes, err
		}
		_, more, err := submit(ctx, tx, *n.First)
		return append(wakes, more...), err
	})
}

// creating is a request that makes a session. Its answer is kept as long as the session, unless it says how long.
func creating(k store.Key, r store.Request) request {
	owner := ""
	if r.KeepUntil.IsZero() {
		owner = k.Session
	}
	return request{r, k.Tenant, owner, k.Session}
}

// heldID is the condition of an id that the user $3 cannot have, because it was another user's less than $4 ago.
const heldID = "user_id <> '' and user_id <> $3 and delete_time > clock_timestamp() - $4::interval"

// insertSession inserts the session's own row. The epoch goes on after a deletion for which the insert may have
// to wait.
func insertSession(ctx context.Context, tx Tx, n *plan.Session) error {
	made, err := tx.Exec(ctx, `
		insert into sessions (tenant, session, agent, agent_revision, body, create_time, update_time, last_seq, head, ready_time, epoch, user_id, session_key,
			parent, root, depth)
		values ($1, $2, $3, $4, $5, $6, $6, $7, $8, $6, 0, $9, $10, $11, $12, $13)
		on conflict do nothing`,
		n.Tenant, n.Session, n.Agent, n.AgentRevision, n.Body, n.CreateTime, n.LastSeq, n.Head, n.User, n.CallerKey, n.Parent, n.Root, n.Depth)
	if err != nil {
		return err
	}
	if made == 0 {
		return store.ErrExists
	}
	if err := putLabels(ctx, tx, n.Key, n.Labels); err != nil {
		return err
	}
	var epoch int64
	var clean, held bool
	err = tx.QueryRow(ctx, "select epoch, clean, "+heldID+" from tombstones where tenant = $1 and session = $2",
		n.Tenant, n.Session, n.User, store.HoldTime).Scan(&epoch, &clean, &held)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case held:
		return store.ErrExists
	case !clean:
		return store.ErrDeleting
	}
	_, err = tx.Exec(ctx, "update sessions set epoch = $3 where tenant = $1 and session = $2", n.Tenant, n.Session, epoch)
	return err
}

// ImportSession implements store.Store.
func (t sessions) ImportSession(ctx context.Context, i store.Import) (store.Answer, error) {
	return once(ctx, t.db, "import session", creating(i.Key, i.Request), nil, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		importing, err := plan.ForImport(i, now)
		if err != nil {
			return nil, err
		}
		if err := capped(ctx, tx, i.Tenant, countedSessions, i.Caps); err != nil {
			return nil, err
		}
		if err := insertSession(ctx, tx, importing.Session); err != nil {
			return nil, err
		}
		return []store.Wake{{Key: i.Key, Kind: store.WakeEvents}, {Kind: store.WakeJobs}}, importBatches(ctx, tx, importing, i)
	})
}

// importBatches writes the batches, and then the session's final numbers.
func importBatches(ctx context.Context, tx Tx, importing *plan.Importing, i store.Import) error {
	for batch, err := range i.Batches {
		if err != nil {
			return err
		}
		rows, err := importing.Batch(batch)
		if err != nil {
			return err
		}
		if err := tx.Insert(ctx, Rows{Turns: rows.Turns, Messages: rows.Messages, Events: rows.Events, Jobs: rows.Jobs}); err != nil {
			return err
		}
	}
	jobs, err := importing.End()
	if err != nil {
		return err
	}
	if err := tx.Insert(ctx, Rows{Jobs: jobs}); err != nil {
		return err
	}
	n := importing.Session
	_, err = tx.Exec(ctx, `
		update sessions set last_seq = $3, next_turn = $4, finished_turns = $5,
			input_tokens = $6, output_tokens = $7, cache_read_tokens = $8, cache_write_tokens = $9, thinking_tokens = $10, cost_nano_usd = $11
		where tenant = $1 and session = $2`,
		n.Tenant, n.Session, n.LastSeq, n.NextTurn, n.FinishedTurns,
		n.Usage.Input, n.Usage.Output, n.Usage.CacheRead, n.Usage.CacheWrite, n.Usage.Thinking, n.Usage.CostNanoUSD)
	return err
}

// GetSession implements store.Store.
func (t sessions) GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error) {
	out, err := scanShown(t.db.Reader().QueryRow(ctx, "select "+shownColumns+" from sessions s where tenant = $1 and session = $2", k.Tenant, k.Session))
	return out, t.db.Fail("get session", err)
}

// SessionOwner implements store.Store.
func (t sessions) SessionOwner(ctx context.Context, k store.Key) (user string, err error) {
	err = t.db.Reader().QueryRow(ctx, "select user_id from sessions where tenant = $1 and session = $2", k.Tenant, k.Session).Scan(&user)
	return user, t.db.Fail("read the owner of a session", err)
}
