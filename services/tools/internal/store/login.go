package store

import (
	"context"
	"errors"
	"time"
)

// ErrNoLogin says that there is no such login.
var ErrNoLogin = errors.New("there is no such login")

// TokenKey says whose token it is, and for which server.
type TokenKey struct{ Tenant, User, Resource string }

// Logins stores logins to MCP servers. What it stores is encrypted by its caller.
type Logins interface {
	// PutLogin stores a login that has begun, by the digest of its secret, until a time.
	// It deletes those whose time is over.
	PutLogin(ctx context.Context, digest, sealed []byte, until time.Time) error

	// TakeLogin deletes a login and returns it, once: ErrNoLogin when it was taken or its
	// time is over.
	TakeLogin(ctx context.Context, digest []byte) (sealed []byte, err error)

	// PutToken stores a token. Unless old is nil, it replaces only this one; otherwise
	// ErrConflict.
	PutToken(ctx context.Context, k TokenKey, sealed, old []byte) error

	// Token reads a token, or returns ErrNoLogin.
	Token(ctx context.Context, k TokenKey) (sealed []byte, err error)

	// DeleteToken deletes a token; unless old is nil, only this one.
	DeleteToken(ctx context.Context, k TokenKey, old []byte) error
}
