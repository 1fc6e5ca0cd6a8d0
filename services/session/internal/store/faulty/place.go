package faulty

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of places.
const (
	PlaceOf     Method = "PlaceOf"
	PlaceNew    Method = "PlaceNew"
	HoldID      Method = "HoldID"
	ForgetPlace Method = "ForgetPlace"
	NoteMade    Method = "NoteMade"
	NoteExport  Method = "NoteExport"
	PlacedOn    Method = "PlacedOn"
	SetDraining Method = "SetDraining"
	Draining    Method = "Draining"
)

// PlaceOf implements store.Places.
func (s places) PlaceOf(ctx context.Context, k store.Key) (store.Place, int64, error) {
	type placed struct {
		store.Place
		epoch int64
	}
	p, err := do(ctx, s.injector, PlaceOf, func() (placed, error) {
		p, epoch, err := s.inner.PlaceOf(ctx, k)
		return placed{p, epoch}, err
	})
	return p.Place, p.epoch, err
}

// PlaceNew implements store.Places.
func (s places) PlaceNew(ctx context.Context, k store.Key, p store.Place) (store.Place, error) {
	return do(ctx, s.injector, PlaceNew, func() (store.Place, error) { return s.inner.PlaceNew(ctx, k, p) })
}

// HoldID implements store.Places.
func (s places) HoldID(ctx context.Context, k store.Key, user string) error {
	return just(ctx, s.injector, HoldID, func() error { return s.inner.HoldID(ctx, k, user) })
}

// ForgetPlace implements store.Places.
func (s places) ForgetPlace(ctx context.Context, k store.Key) error {
	return just(ctx, s.injector, ForgetPlace, func() error { return s.inner.ForgetPlace(ctx, k) })
}

// NoteMade implements store.Places.
func (s places) NoteMade(ctx context.Context, k store.Key, generation int64) error {
	return just(ctx, s.injector, NoteMade, func() error { return s.inner.NoteMade(ctx, k, generation) })
}

// NoteExport implements store.Places.
func (s places) NoteExport(ctx context.Context, k store.Key, generation int64, e store.Export) error {
	return just(ctx, s.injector, NoteExport, func() error { return s.inner.NoteExport(ctx, k, generation, e) })
}

// PlacedOn implements store.Places.
func (s places) PlacedOn(ctx context.Context, node string, after store.Key, limit int) ([]store.Key, error) {
	return do(ctx, s.injector, PlacedOn, func() ([]store.Key, error) { return s.inner.PlacedOn(ctx, node, after, limit) })
}

// SetDraining implements store.Places.
func (s places) SetDraining(ctx context.Context, node string, draining bool) error {
	return just(ctx, s.injector, SetDraining, func() error { return s.inner.SetDraining(ctx, node, draining) })
}

// Draining implements store.Places.
func (s places) Draining(ctx context.Context) ([]string, error) {
	return do(ctx, s.injector, Draining, func() ([]string, error) { return s.inner.Draining(ctx) })
}
