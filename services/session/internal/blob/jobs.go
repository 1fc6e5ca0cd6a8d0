package blob

import (
	"context"
	"fmt"

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

// batch is how many files are deleted at once.
const batch = 100

// Expire does the store.JobExpireFiles: it deletes files whose time has come.
func (b *Blobs) Expire(ctx context.Context, _ store.Job) (*store.Job, error) {
	n, err := b.Rows.ExpireFiles(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("delete files whose time has come: %w", err)
	}
	if n == batch {
		return &store.Job{}, nil // there may be more
	}
	return nil, nil
}
