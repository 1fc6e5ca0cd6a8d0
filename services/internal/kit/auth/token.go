package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// user is a user of a tenant.
type user struct{ tenant, name string }

// most is what a user may do at most.
type most struct {
	role    principal.Role
	refused bool
}

// resolveToken finds what the holder of a token may do: what its claims say, within what its user may do here. The id is
// that of the token at the resource.
func (a *Authenticator) resolveToken(ctx context.Context, token, resource string, id [sha256.Size]byte) (Resolved, error) {
	r, ok := a.tokens.Get(id)
	if !ok {
		var err error
		if r, err = a.verifyToken(ctx, token, resource); err != nil {
			return Resolved{}, err
		}
		until := time.Now().Add(tokenTime)
		if r.Expire.Before(until) {
			until = r.Expire
		}
		a.tokens.Put(id, r, until)
	}
	p, err := a.bounded(ctx, r.Principal)
	r.Principal = p
	return r, err
}

// verifyToken verifies a token of one of the issuers.
func (a *Authenticator) verifyToken(ctx context.Context, token, resource string) (Resolved, error) {
	id := sha256.Sum256([]byte(token))
	i, err := a.issuerOf(token)
	var r Resolved
	if err == nil {
		r, err = i.verify(ctx, token, resource)
		r.Credential = "tokens/" + hex.EncodeToString(id[:8])
	}
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return Resolved{}, ctx.Err()
	case errors.Is(err, errUnreachable):
		a.log.WarnContext(ctx, "a token cannot be checked", "error", err)
		return Resolved{}, unavailable()
	}
	a.log.InfoContext(ctx, "a token is refused", "reason", err.Error(), "hash", hex.EncodeToString(id[:6]))
	return Resolved{}, errInvalid
}

// bounded returns the principal of a token with the role that its user may have at most. A deleted user and a
// tenant that does not exist are refused.
func (a *Authenticator) bounded(ctx context.Context, p principal.Principal) (principal.Principal, error) {
	u := user{p.Tenant, p.User}
	m, ok := a.users.Get(u)
	if !ok {
		role, err := a.keys.MostRole(ctx, p.Tenant, p.User)
		switch {
		case errors.Is(err, ErrRefused):
			m.refused = true
			a.log.InfoContext(ctx, "a token is refused: its user was deleted, or its tenant does not exist", "tenant", p.Tenant, "reason", err.Error())
		case ctx.Err() != nil:
			return p, ctx.Err()
		case err != nil:
			a.log.WarnContext(ctx, "the user of a token cannot be checked", "error", err)
			return p, unavailable()
		}
		m.role = role
		a.users.Put(u, m, time.Now().Add(keyTime))
	}
	if m.refused {
		return p, errInvalid
	}
	p.Role = min(p.Role, m.role)
	return p, nil
}
