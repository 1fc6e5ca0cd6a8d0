package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Keys returns what knows the API keys, for the listeners of this program.
func (s *Service) Keys() auth.Keys { return localKeys{s.keys} }

type localKeys struct{ keys *apikey.Resolver }

// ResolveKey implements auth.Keys.
func (l localKeys) ResolveKey(ctx context.Context, sha256 []byte) (r auth.Resolved, err error) {
	if len(sha256) == 0 {
		r.Principal, err = principal.Default(), l.keys.Open(ctx)
		return r, refused(err)
	}
	k, err := l.keys.Resolve(ctx, sha256)
	if err != nil {
		return r, refused(err)
	}
	r.Principal = principal.Principal{Tenant: k.Tenant, User: k.User, Role: principal.Role(k.Role), Scopes: k.Scopes, Credential: "keys/" + k.Key}
	r.Expire = k.Expire
	return r, nil
}

// MostRole implements auth.Keys.
func (l localKeys) MostRole(ctx context.Context, tenant, user string) (principal.Role, error) {
	role, err := l.keys.MostOf(ctx, store.Owner{Tenant: tenant, User: user})
	return principal.Role(role), refused(err)
}

func refused(err error) error {
	for _, refusal := range []error{apikey.ErrRefused, apikey.ErrDeleted, apikey.ErrTenant, apikey.ErrMissing} {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %w", auth.ErrRefused, err)
		}
	}
	return err
}
