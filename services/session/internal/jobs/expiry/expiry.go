// Package expiry ends the wait of calls that get no answer in time: approvals by
// people, and results of clients' tools.
package expiry

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Job returns the job that ends the wait of a session's call after some time, by
// the database's clock.
func Job(k store.Key, call string, after time.Duration) store.Job {
	return store.Job{
		Tenant: k.Tenant, Kind: store.JobExpire, ID: store.ExpiryID(k.Session, call), Session: k.Session, Body: []byte(call), After: after,
	}
}

// Inbox is the part of a store that an expiry needs.
type Inbox interface {
	Submit(ctx context.Context, s store.Submit) (store.Answer, error)
}

// Handler returns the handler of store.JobExpire: it tells the session. An earlier answer
// stays valid.
func Handler(s Inbox) jobs.Handler {
	return func(ctx context.Context, j store.Job) (*store.Job, error) {
		_, err := s.Submit(ctx, store.Submit{
			Key:     store.Key{Tenant: j.Tenant, Session: j.Session},
			Command: store.Command{Kind: store.CommandExpire, CallID: string(j.Body), User: jobs.User},
		})
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil // the session was deleted
		}
		return nil, err
	}
}
