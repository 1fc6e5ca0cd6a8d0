package blob

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Delete does a store.JobFile: it deletes the content of a file that was deleted.
func (b *Blobs) Delete(ctx context.Context, j store.Job) (*store.Job, error) {
	all, err := b.Objects.List(ctx, j.Tenant+"/"+j.ID+"/")
	if err != nil {
		return nil, fmt.Errorf("list the content of files/%s: %w", j.ID, err)
	}
	for _, o := range all {
		if err := b.Objects.Delete(ctx, o.Key); err != nil {
			return nil, fmt.Errorf("delete the content of files/%s: %w", j.ID, err)
		}
	}
	return nil, nil
}

const (
	// every is the interval between two searches for files whose time has come.
	every = time.Minute
	// batch is how many are deleted at once.
	batch = 100
)

// ExpireJob returns the only job that deletes files whose time has come. It belongs to no tenant.
func ExpireJob() store.Job { return store.Job{Kind: store.JobExpireFiles, ID: "expire_files"} }

// Expire does an ExpireJob.
func (b *Blobs) Expire(ctx context.Context, _ store.Job) (*store.Job, error) {
	n, err := b.Rows.ExpireFiles(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("delete files whose time has come: %w", err)
	}
	if n == batch {
		return &store.Job{}, nil // there may be more
	}
	return &store.Job{After: every}, nil
}
