package jobs

import (
	"context"
	"errors"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// expireCall does a store.JobExpire: it ends the wait of a call that got no answer in time, of a person or of a
// client's tool. An earlier answer stays valid.
func (d *Deps) expireCall(ctx context.Context, j store.Job) (*store.Job, error) {
	_, err := d.Store.Submit(ctx, store.Submit{
		Key:     store.Key{Tenant: j.Tenant, Session: j.Session},
		Command: store.Command{Kind: store.CommandExpire, CallID: string(j.Body), User: User},
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // the session was deleted
	}
	return nil, err
}
