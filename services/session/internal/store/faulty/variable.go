package faulty

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of variables.
const (
	SetVariable    Method = "SetVariable"
	DeleteVariable Method = "DeleteVariable"
	Variables      Method = "Variables"
)

// ClaimRequestKey is the method of RequestKeys.
const ClaimRequestKey Method = "ClaimRequestKey"

// ClaimRequestKey implements store.RequestKeys.
func (s variables) ClaimRequestKey(ctx context.Context, o store.Owner, digest, key string, repeated bool, until time.Time) (string, error) {
	return do(ctx, s.injector, ClaimRequestKey, func() (string, error) {
		return s.inner.ClaimRequestKey(ctx, o, digest, key, repeated, until)
	})
}

// SetVariable implements store.Variables.
func (s variables) SetVariable(ctx context.Context, o store.Owner, v store.Variable, r store.Request) (store.Variable, error) {
	return do(ctx, s.injector, SetVariable, func() (store.Variable, error) { return s.inner.SetVariable(ctx, o, v, r) })
}

// DeleteVariable implements store.Variables.
func (s variables) DeleteVariable(ctx context.Context, o store.Owner, name string, r store.Request) error {
	return just(ctx, s.injector, DeleteVariable, func() error { return s.inner.DeleteVariable(ctx, o, name, r) })
}

// Variables implements store.Variables.
func (s variables) Variables(ctx context.Context, o store.Owner) ([]store.Variable, error) {
	return do(ctx, s.injector, Variables, func() ([]store.Variable, error) { return s.inner.Variables(ctx, o) })
}
