package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of schedules and webhooks.
const (
	CreateSchedule Method = "CreateSchedule"
	GetSchedule    Method = "GetSchedule"
	ListSchedules  Method = "ListSchedules"
	PauseSchedule  Method = "PauseSchedule"
	DeleteSchedule Method = "DeleteSchedule"
	ScheduleFired  Method = "ScheduleFired"
	CreateWebhook  Method = "CreateWebhook"
	GetWebhook     Method = "GetWebhook"
	ListWebhooks   Method = "ListWebhooks"
	RotateWebhook  Method = "RotateWebhook"
	DeleteWebhook  Method = "DeleteWebhook"
	GetDelivery    Method = "GetDelivery"
	ListDeliveries Method = "ListDeliveries"
	Delivered      Method = "Delivered"
)

// CreateSchedule implements store.Schedules.
func (s schedules) CreateSchedule(ctx context.Context, n store.NewSchedule) (store.Answer, error) {
	return do(ctx, s.injector, CreateSchedule, func() (store.Answer, error) { return s.inner.CreateSchedule(ctx, n) })
}

// GetSchedule implements store.Schedules.
func (s schedules) GetSchedule(ctx context.Context, k store.Key, id string) (*store.ScheduleRow, error) {
	return do(ctx, s.injector, GetSchedule, func() (*store.ScheduleRow, error) { return s.inner.GetSchedule(ctx, k, id) })
}

// ListSchedules implements store.Schedules.
func (s schedules) ListSchedules(ctx context.Context, k store.Key, after string, limit int) ([]*sessionv1.Schedule, error) {
	return do(ctx, s.injector, ListSchedules, func() ([]*sessionv1.Schedule, error) { return s.inner.ListSchedules(ctx, k, after, limit) })
}

// PauseSchedule implements store.Schedules.
func (s schedules) PauseSchedule(ctx context.Context, p store.PauseSchedule) (store.Answer, error) {
	return do(ctx, s.injector, PauseSchedule, func() (store.Answer, error) { return s.inner.PauseSchedule(ctx, p) })
}

// DeleteSchedule implements store.Schedules.
func (s schedules) DeleteSchedule(ctx context.Context, k store.Key, id string, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteSchedule, func() (store.Answer, error) { return s.inner.DeleteSchedule(ctx, k, id, r) })
}

// ScheduleFired implements store.Schedules.
func (s schedules) ScheduleFired(ctx context.Context, f store.ScheduleFired) error {
	return just(ctx, s.injector, ScheduleFired, func() error { return s.inner.ScheduleFired(ctx, f) })
}

// CreateWebhook implements store.Webhooks.
func (s webhooks) CreateWebhook(ctx context.Context, n store.NewWebhook) (store.Answer, error) {
	return do(ctx, s.injector, CreateWebhook, func() (store.Answer, error) { return s.inner.CreateWebhook(ctx, n) })
}

// GetWebhook implements store.Webhooks.
func (s webhooks) GetWebhook(ctx context.Context, tenant, id string) (*store.WebhookRow, error) {
	return do(ctx, s.injector, GetWebhook, func() (*store.WebhookRow, error) { return s.inner.GetWebhook(ctx, tenant, id) })
}

// ListWebhooks implements store.Webhooks.
func (s webhooks) ListWebhooks(ctx context.Context, tenant, after string, limit int) ([]*sessionv1.Webhook, error) {
	return do(ctx, s.injector, ListWebhooks, func() ([]*sessionv1.Webhook, error) { return s.inner.ListWebhooks(ctx, tenant, after, limit) })
}

// RotateWebhook implements store.Webhooks.
func (s webhooks) RotateWebhook(ctx context.Context, r store.RotateWebhook) (store.Answer, error) {
	return do(ctx, s.injector, RotateWebhook, func() (store.Answer, error) { return s.inner.RotateWebhook(ctx, r) })
}

// DeleteWebhook implements store.Webhooks.
func (s webhooks) DeleteWebhook(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteWebhook, func() (store.Answer, error) { return s.inner.DeleteWebhook(ctx, tenant, id, r) })
}

// GetDelivery implements store.Webhooks.
func (s webhooks) GetDelivery(ctx context.Context, tenant, id string) (*store.DeliveryRow, error) {
	return do(ctx, s.injector, GetDelivery, func() (*store.DeliveryRow, error) { return s.inner.GetDelivery(ctx, tenant, id) })
}

// ListDeliveries implements store.Webhooks.
func (s webhooks) ListDeliveries(ctx context.Context, tenant, webhook, after string, limit int) ([]*sessionv1.Delivery, error) {
	return do(ctx, s.injector, ListDeliveries, func() ([]*sessionv1.Delivery, error) {
		return s.inner.ListDeliveries(ctx, tenant, webhook, after, limit)
	})
}

// Delivered implements store.Webhooks.
func (s webhooks) Delivered(ctx context.Context, d store.Delivered) error {
	return just(ctx, s.injector, Delivered, func() error { return s.inner.Delivered(ctx, d) })
}
