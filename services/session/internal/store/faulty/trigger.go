package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of triggers.
const (
	CreateTrigger Method = "CreateTrigger"
	FindTrigger   Method = "FindTrigger"
	ListTriggers  Method = "ListTriggers"
	PauseTrigger  Method = "PauseTrigger"
	RotateTrigger Method = "RotateTrigger"
	DeleteTrigger Method = "DeleteTrigger"
	TriggerFired  Method = "TriggerFired"
)

// CreateTrigger implements store.Triggers.
func (s triggers) CreateTrigger(ctx context.Context, n store.NewTrigger) (store.Answer, error) {
	return do(ctx, s.injector, CreateTrigger, func() (store.Answer, error) { return s.inner.CreateTrigger(ctx, n) })
}

// FindTrigger implements store.Triggers.
func (s triggers) FindTrigger(ctx context.Context, id string) (*store.TriggerRow, error) {
	return do(ctx, s.injector, FindTrigger, func() (*store.TriggerRow, error) { return s.inner.FindTrigger(ctx, id) })
}

// ListTriggers implements store.Triggers.
func (s triggers) ListTriggers(ctx context.Context, p store.TriggerPage) ([]*sessionv1.Trigger, error) {
	return do(ctx, s.injector, ListTriggers, func() ([]*sessionv1.Trigger, error) { return s.inner.ListTriggers(ctx, p) })
}

// PauseTrigger implements store.Triggers.
func (s triggers) PauseTrigger(ctx context.Context, tenant, id string, paused bool, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, PauseTrigger, func() (store.Answer, error) { return s.inner.PauseTrigger(ctx, tenant, id, paused, r) })
}

// RotateTrigger implements store.Triggers.
func (s triggers) RotateTrigger(ctx context.Context, r store.RotateTrigger) (store.Answer, error) {
	return do(ctx, s.injector, RotateTrigger, func() (store.Answer, error) { return s.inner.RotateTrigger(ctx, r) })
}

// DeleteTrigger implements store.Triggers.
func (s triggers) DeleteTrigger(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteTrigger, func() (store.Answer, error) { return s.inner.DeleteTrigger(ctx, tenant, id, r) })
}

// TriggerFired implements store.Triggers.
func (s triggers) TriggerFired(ctx context.Context, f store.TriggerFired) error {
	return just(ctx, s.injector, TriggerFired, func() error { return s.inner.TriggerFired(ctx, f) })
}
