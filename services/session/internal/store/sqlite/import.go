package sqlite

import (
	"context"
	"database/sql"
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// ListTree implements store.Store.
func (s *Store) ListTree(ctx context.Context, k store.Key, after string, n, maxBytes int) ([]*sessionv1.Message, error) {
	var bodies [][]byte
	err := s.read(ctx, "list the message tree", func(tx *sql.Tx) (err error) {
		if err = sessionExists(ctx, tx, k); err != nil {
			return err
		}
		bodies, err = boundedBodies(ctx, tx, maxBytes,
			"select body from messages where tenant = ? and session = ? and message > ? order by message limit ?", k.Tenant, k.Session, after, limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// ImportSession implements store.Store.
func (s *Store) ImportSession(ctx context.Context, i store.Import) (store.Answer, error) {
	answer := store.Answer{Value: i.Session}
	err := s.write(ctx, "import session", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, i.Tenant, i.Request, now); err != nil || old != nil {
			return nil, replay(&answer, old, err)
		}
		plan, err := backend.PlanImport(i, now)
		if err != nil {
			return nil, err
		}
		if err := insertSession(ctx, tx, plan.Session); err != nil {
			return nil, err
		}
		if err := importBatches(ctx, tx, plan, i); err != nil {
			return nil, err
		}
		owner := ""
		if i.Request.KeepUntil.IsZero() {
			owner = i.Session
		}
		if err := remember(ctx, tx, i.Tenant, owner, i.Request, answer.Value, now); err != nil {
			return nil, err
		}
		return []store.Wake{{Key: i.Key, Kind: store.WakeEvents}, {Kind: store.WakeJobs}}, nil
	})
	return backend.Answered(answer, err)
}

// importBatches writes the batches, and then the session's final numbers.
func importBatches(ctx context.Context, tx *sql.Tx, plan *backend.Importing, i store.Import) error {
	for batch, err := range i.Batches {
		if err != nil {
			return err
		}
		rows, err := plan.Batch(batch)
		if err != nil {
			return err
		}
		if err := errors.Join(
			each(ctx, tx, "insert into turns (tenant, session, turn, number, state, body) values (?, ?, ?, ?, ?, ?)",
				rows.Turns, func(t backend.Turn) []any { return []any{t.Tenant, t.Session, t.ID, t.Number, t.State, t.Body} }),
			insertMessages(ctx, tx, rows.Messages), insertEvents(ctx, tx, rows.Events), insertJobs(ctx, tx, rows.Jobs),
		); err != nil {
			return err
		}
	}
	jobs, err := plan.End()
	if err != nil {
		return err
	}
	if err := insertJobs(ctx, tx, jobs); err != nil {
		return err
	}
	n := plan.Session
	_, err = tx.ExecContext(ctx, `
		update sessions set last_seq = ?, next_turn = ?, finished_turns = ?,
			input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, thinking_tokens = ?, cost_nano_usd = ?
		where tenant = ? and session = ?`,
		n.LastSeq, n.NextTurn, n.FinishedTurns,
		n.Usage.Input, n.Usage.Output, n.Usage.CacheRead, n.Usage.CacheWrite, n.Usage.Thinking, n.Usage.CostNanoUSD, n.Tenant, n.Session)
	return err
}
