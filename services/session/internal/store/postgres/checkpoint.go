package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// queueCheckpoints removes and adds checkpoints.
func queueCheckpoints(b *pgx.Batch, c *backend.Commit) {
	if len(c.DropCheckpoints) > 0 {
		tenants, sessions, ids := splitIDs(c.DropCheckpoints)
		b.Queue("delete from checkpoints where (tenant, session, checkpoint) in (select * from unnest($1::text[], $2::text[], $3::text[]))",
			tenants, sessions, ids)
	}
	for _, p := range c.Checkpoints {
		b.Queue("insert into checkpoints (tenant, session, checkpoint, seq, body) values ($1, $2, $3, $4, $5) on conflict do nothing",
			p.Tenant, p.Session, p.ID.ID, p.Seq, p.Body)
	}
}

// GetCheckpoint implements store.Checkpoints.
func (s *Store) GetCheckpoint(ctx context.Context, k store.Key, id string) (*sessionv1.Checkpoint, error) {
	var body []byte
	if err := s.pool.QueryRow(ctx, "select body from checkpoints where tenant = $1 and session = $2 and checkpoint = $3",
		k.Tenant, k.Session, id).Scan(&body); err != nil {
		return nil, fail("get checkpoint", err)
	}
	found, err := backend.Decode[sessionv1.Checkpoint]([][]byte{body})
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// ListCheckpoints implements store.Checkpoints.
func (s *Store) ListCheckpoints(ctx context.Context, k store.Key, before int64, n int) ([]*sessionv1.Checkpoint, error) {
	var bodies [][]byte
	err := s.read(ctx, "list checkpoints", func(tx pgx.Tx) error {
		if err := sessionExists(ctx, tx, k); err != nil {
			return err
		}
		var err error
		bodies, err = collect(ctx, tx, pgx.RowTo[[]byte],
			"select body from checkpoints where tenant = $1 and session = $2 and ($3::bigint = 0 or seq < $3) order by seq desc limit $4",
			k.Tenant, k.Session, before, limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Checkpoint](bodies)
}
