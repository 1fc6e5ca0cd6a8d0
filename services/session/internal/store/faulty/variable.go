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
func (s *Store) SetVariable(ctx context.Context, o store.Owner, v store.Variable, r store.Request) (store.Variable, error) {
	return do(ctx, s, SetVariable, func() (store.Variable, error) { return s.inner.SetVariable(ctx, o, v, r) })
}

// DeleteVariable implements store.Variables.
func (s *Store) DeleteVariable(ctx context.Context, o store.Owner, name string, r store.Request) error {
	return just(ctx, s, DeleteVariable, func() error { return s.inner.DeleteVariable(ctx, o, name, r) })
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, o store.Owner) ([]store.Variable, error) {
	return do(ctx, s, Variables, func() ([]store.Variable, error) { return s.inner.Variables(ctx, o) })
}
