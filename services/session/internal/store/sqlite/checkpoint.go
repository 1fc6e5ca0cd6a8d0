package sqlite

import (
	"context"
	"database/sql"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// applyCheckpoints removes and adds checkpoints.
func applyCheckpoints(ctx context.Context, tx *sql.Tx, c *backend.Commit) error {
	if err := each(ctx, tx, "delete from checkpoints where tenant = ? and session = ? and checkpoint = ?",
		c.DropCheckpoints, func(id backend.ID) []any { return []any{id.Tenant, id.Session, id.ID} }); err != nil {
		return err
	}
	return each(ctx, tx, "insert into checkpoints (tenant, session, checkpoint, seq, body) values (?, ?, ?, ?, ?) on conflict do nothing",
		c.Checkpoints, func(p backend.Checkpoint) []any { return []any{p.Tenant, p.Session, p.ID.ID, p.Seq, p.Body} })
}

// GetCheckpoint implements store.Checkpoints.
func (s *Store) GetCheckpoint(ctx context.Context, k store.Key, id string) (*sessionv1.Checkpoint, error) {
	var body []byte
	if err := s.db.R.QueryRowContext(ctx, "select body from checkpoints where tenant = ? and session = ? and checkpoint = ?",
		k.Tenant, k.Session, id).Scan(&body); err != nil {
		return nil, s.fail("get checkpoint", err)
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
	err := s.read(ctx, "list checkpoints", func(tx *sql.Tx) error {
		if err := sessionExists(ctx, tx, k); err != nil {
			return err
		}
		var err error
		bodies, err = collect(ctx, tx, scanBody,
			"select body from checkpoints where tenant = ? and session = ? and (? = 0 or seq < ?) order by seq desc limit ?",
			k.Tenant, k.Session, before, before, limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Checkpoint](bodies)
}
