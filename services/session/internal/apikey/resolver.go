package apikey

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Reasons why Resolve refuses a call.
var (
	ErrRefused = errors.New("the key is not valid")
	ErrMissing = errors.New("a credential is needed")
	ErrDeleted = errors.New("the user was deleted")
	ErrTenant  = errors.New("the tenant does not exist")
)

const (
	// writeUses is how often the last uses of keys are written.
	writeUses = time.Minute
	// writeTimeout bounds a write of last uses.
	writeTimeout = 5 * time.Second
)

// Resolver finds what the holders of keys may do. It is safe for concurrent use.
type Resolver struct {
	store  store.Identities
	log    *slog.Logger
	closed atomic.Bool // there is a key

	mu   sync.Mutex
	uses map[store.KeyUse]time.Time // by key, with a zero Time
}

// NewResolver returns a resolver. It allows calls without a credential until the first key exists; auth.mode of an
// edge may refuse them before.
func NewResolver(s store.Identities, log *slog.Logger) *Resolver {
	return &Resolver{store: s, log: log, uses: map[store.KeyUse]time.Time{}}
}

// Resolve returns what the holder of the key with this hash may do, or ErrRefused.
func (r *Resolver) Resolve(ctx context.Context, hash []byte) (store.Resolved, error) {
	k, err := r.store.ResolveKey(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return store.Resolved{}, ErrRefused
	}
	if err != nil {
		return store.Resolved{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[store.KeyUse{Tenant: k.Tenant, Key: k.Key}] = time.Now()
	return k, nil
}

// MostOf returns the highest role that a user may have: that of the user here, or ROLE_ADMIN for one that was never
// created here. ErrDeleted for a deleted user, ErrTenant for a tenant that does not exist.
func (r *Resolver) MostOf(ctx context.Context, o store.Owner) (commonv1.Role, error) {
	u, err := r.store.GetUser(ctx, o)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err := r.store.GetTenant(ctx, o.Tenant)
		if errors.Is(err, store.ErrNotFound) {
			err = ErrTenant
		}
		return commonv1.Role_ROLE_ADMIN, err
	case err != nil:
		return commonv1.Role_ROLE_UNSPECIFIED, err
	case u.Disabled:
		return commonv1.Role_ROLE_UNSPECIFIED, ErrDeleted
	}
	return u.Role, nil
}

// Open returns ErrMissing unless calls without a credential are allowed. Once a key exists they never are
// again.
func (r *Resolver) Open(ctx context.Context) error {
	if r.closed.Load() {
		return ErrMissing
	}
	has, err := r.store.HasKeys(ctx, "")
	if err != nil {
		return err
	}
	if has {
		r.closed.Store(true)
		return ErrMissing
	}
	return nil
}

// Run writes the last uses of keys once a minute, and when ctx ends.
func (r *Resolver) Run(ctx context.Context) error {
	tick := time.NewTicker(writeUses)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			r.write(last)
			return nil
		case <-tick.C:
			r.write(ctx)
		}
	}
}

// write writes the last uses since the last write. What cannot be written is tried again with the next one.
func (r *Resolver) write(ctx context.Context) {
	r.mu.Lock()
	uses := r.uses
	r.uses = map[store.KeyUse]time.Time{}
	r.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	all := make([]store.KeyUse, 0, len(uses))
	for k, at := range uses {
		k.Time = at
		all = append(all, k)
	}
	if err := r.store.KeysUsed(ctx, all); err != nil {
		r.log.WarnContext(ctx, "cannot write when keys were used last", "error", err)
		r.mu.Lock()
		defer r.mu.Unlock()
		for k, at := range uses {
			if r.uses[k].Before(at) {
				r.uses[k] = at
			}
		}
	}
}
