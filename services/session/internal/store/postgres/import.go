package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// ListTree implements store.Store.
func (s *Store) ListTree(ctx context.Context, k store.Key, after string, n, maxBytes int) ([]*sessionv1.Message, error) {
	var bound *int
	if maxBytes > 0 {
		bound = &maxBytes
	}
	bodies, err := collect(ctx, s.pool, pgx.RowTo[[]byte], `
		select body from (
			select message, body, row_number() over w as place, sum(octet_length(body)) over w as total
			from (select message, body from messages where tenant = $1 and session = $2 and message > $3 order by message limit $4) m
			window w as (order by message)
		) m where place = 1 or $5::bigint is null or total <= $5 order by message`,
		k.Tenant, k.Session, after, limit(n), bound)
	if err == nil && len(bodies) == 0 {
		err = sessionExists(ctx, s.pool, k)
	}
	if err != nil {
		return nil, fail("list the message tree", err)
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// ImportSession implements store.Store.
func (s *Store) ImportSession(ctx context.Context, i store.Import) (store.Answer, error) {
	var answer store.Answer
	err := s.write(ctx, "import session", func(tx pgx.Tx) error {
		now, err := dbNow(ctx, tx)
		if err != nil {
			return err
		}
		owner := ""
		if i.Request.KeepUntil.IsZero() {
			owner = i.Session
		}
		if answer, err = remember(ctx, tx, i.Tenant, owner, i.Request, i.Session); err != nil || answer.Replayed {
			return err
		}
		plan, err := backend.PlanImport(i, now)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		if err := insertSession(ctx, tx, plan.Session, b); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := importBatches(ctx, tx, plan, i); err != nil {
			return err
		}
		return notify(ctx, tx, store.Wake{Key: i.Key, Kind: store.WakeEvents})
	})
	if err == nil && !answer.Replayed {
		s.wakes.Send(store.Wake{Kind: store.WakeJobs})
	}
	return backend.Answered(answer, err)
}

// importBatches writes the batches, and then the session's final numbers.
func importBatches(ctx context.Context, tx pgx.Tx, plan *backend.Importing, i store.Import) error {
	for batch, err := range i.Batches {
		if err != nil {
			return err
		}
		rows, err := plan.Batch(batch)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		for _, t := range rows.Turns {
			b.Queue("insert into turns (tenant, session, turn, number, state, body) values ($1, $2, $3, $4, $5, $6)",
				t.Tenant, t.Session, t.ID, t.Number, int32(t.State), t.Body)
		}
		queueMessages(b, rows.Messages)
		queueEvents(b, rows.Events)
		queueJobs(b, rows.Jobs)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	jobs, err := plan.End()
	if err != nil {
		return err
	}
	n, b := plan.Session, &pgx.Batch{}
	queueJobs(b, jobs)
	b.Queue(`
		update sessions set last_seq = $3, next_turn = $4, finished_turns = $5,
			input_tokens = $6, output_tokens = $7, cache_read_tokens = $8, cache_write_tokens = $9, thinking_tokens = $10, cost_nano_usd = $11
		where tenant = $1 and session = $2`,
		n.Tenant, n.Session, n.LastSeq, n.NextTurn, n.FinishedTurns,
		n.Usage.Input, n.Usage.Output, n.Usage.CacheRead, n.Usage.CacheWrite, n.Usage.Thinking, n.Usage.CostNanoUSD)
	return tx.SendBatch(ctx, b).Close()
}
