package store

import (
	"context"
	"time"
)

// Limits of one user's variables.
const (
	MaxVariables     = 128
	MaxVariableBytes = 256 << 10 // names and values together
)

// Owner is a user of a tenant.
type Owner struct{ Tenant, User string }

// Variable is an environment variable of a user's commands. Value must not get
// into answers, logs, events or spans.
type Variable struct {
	Name, Value string
	Time        time.Time // when it was set, by the store
}

// RequestKeys makes idempotency keys for clients that send none.
type RequestKeys interface {
	// ClaimRequestKey stores a new key for the requests of a user with this digest, until a time. For a
	// repetition it returns the key that is stored, if there is one.
	ClaimRequestKey(ctx context.Context, o Owner, digest, key string, repeated bool, until time.Time) (string, error)
}

// Variables stores the variables of users. They belong to no session and no node.
type Variables interface {
	// SetVariable sets a variable; ErrTooMany, ErrRequestIDReused. A repeated
	// request returns the variable as it is now, if it still exists.
	SetVariable(ctx context.Context, o Owner, v Variable, r Request) (Variable, error)
	// DeleteVariable deletes a variable; ErrNotFound, ErrRequestIDReused.
	DeleteVariable(ctx context.Context, o Owner, name string, r Request) error
	// Variables reads a user's variables with their values, by name.
	Variables(ctx context.Context, o Owner) ([]Variable, error)
}
