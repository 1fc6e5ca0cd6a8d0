package access

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/cache"
)

// The owner of a session never changes, but a deleted session's id can become another user's. So an owner is
// remembered for less time than a deletion takes.
const (
	ownerTime = time.Second
	maxOwners = 10_000
)

type ownerKey struct{ tenant, session string }

// owners remembers the owners of sessions.
type owners struct {
	Sessions
	known *cache.Cache[ownerKey, string]
}

func newOwners(s Sessions) *owners { return &owners{s, cache.New[ownerKey, string](maxOwners)} }

// of returns the owner of a session, or "" if there is no such session.
func (o *owners) of(ctx context.Context, tenant, session string) (string, error) {
	k := ownerKey{tenant, session}
	if user, ok := o.known.Get(k); ok {
		return user, nil
	}
	user, err := o.SessionOwner(ctx, session)
	if err == nil && user != "" {
		o.known.Put(k, user, time.Now().Add(ownerTime))
	}
	return user, err
}
