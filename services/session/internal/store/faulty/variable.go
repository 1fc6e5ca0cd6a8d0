package faulty

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of variables.
const (
	SetVariable    Method = "SetVariable"
	DeleteVariable Method = "DeleteVariable"
	Variables      Method = "Variables"
)

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
