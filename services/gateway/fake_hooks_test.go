package gateway_test

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func (f *fake) CreateSchedule(ctx context.Context, r *sessionv1.CreateScheduleRequest) (*sessionv1.CreateScheduleResponse, error) {
	return &sessionv1.CreateScheduleResponse{Schedule: &sessionv1.Schedule{Name: r.GetParent() + "/schedules/c1"}}, f.note(ctx, r)
}

func (f *fake) GetSchedule(ctx context.Context, r *sessionv1.GetScheduleRequest) (*sessionv1.GetScheduleResponse, error) {
	return &sessionv1.GetScheduleResponse{Schedule: &sessionv1.Schedule{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListSchedules(ctx context.Context, r *sessionv1.ListSchedulesRequest) (*sessionv1.ListSchedulesResponse, error) {
	return &sessionv1.ListSchedulesResponse{}, f.note(ctx, r)
}

func (f *fake) PauseSchedule(ctx context.Context, r *sessionv1.PauseScheduleRequest) (*sessionv1.PauseScheduleResponse, error) {
	return &sessionv1.PauseScheduleResponse{Schedule: &sessionv1.Schedule{Name: r.GetName(), Paused: r.GetPaused()}}, f.note(ctx, r)
}

func (f *fake) DeleteSchedule(ctx context.Context, r *sessionv1.DeleteScheduleRequest) (*sessionv1.DeleteScheduleResponse, error) {
	return &sessionv1.DeleteScheduleResponse{}, f.note(ctx, r)
}

func (f *fake) CreateTrigger(ctx context.Context, r *sessionv1.CreateTriggerRequest) (*sessionv1.CreateTriggerResponse, error) {
	return &sessionv1.CreateTriggerResponse{Trigger: &sessionv1.Trigger{Name: "triggers/t1"}, Secret: "whsec_x"}, f.note(ctx, r)
}

func (f *fake) FireTrigger(ctx context.Context, r *sessionv1.FireTriggerRequest) (*sessionv1.FireTriggerResponse, error) {
	return &sessionv1.FireTriggerResponse{Turn: "sessions/s1/turns/t1"}, f.note(ctx, r)
}

func (f *fake) CreateWebhook(ctx context.Context, r *sessionv1.CreateWebhookRequest) (*sessionv1.CreateWebhookResponse, error) {
	return &sessionv1.CreateWebhookResponse{Webhook: &sessionv1.Webhook{Name: "webhooks/w1"}, Secret: "whsec_x"}, f.note(ctx, r)
}

func (f *fake) GetWebhook(ctx context.Context, r *sessionv1.GetWebhookRequest) (*sessionv1.GetWebhookResponse, error) {
	return &sessionv1.GetWebhookResponse{Webhook: &sessionv1.Webhook{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) ListWebhooks(ctx context.Context, r *sessionv1.ListWebhooksRequest) (*sessionv1.ListWebhooksResponse, error) {
	return &sessionv1.ListWebhooksResponse{}, f.note(ctx, r)
}

func (f *fake) RotateWebhookSecret(ctx context.Context, r *sessionv1.RotateWebhookSecretRequest) (*sessionv1.RotateWebhookSecretResponse, error) {
	return &sessionv1.RotateWebhookSecretResponse{Webhook: &sessionv1.Webhook{Name: r.GetName()}, Secret: "whsec_y"}, f.note(ctx, r)
}

func (f *fake) DeleteWebhook(ctx context.Context, r *sessionv1.DeleteWebhookRequest) (*sessionv1.DeleteWebhookResponse, error) {
	return &sessionv1.DeleteWebhookResponse{}, f.note(ctx, r)
}

func (f *fake) ListDeliveries(ctx context.Context, r *sessionv1.ListDeliveriesRequest) (*sessionv1.ListDeliveriesResponse, error) {
	return &sessionv1.ListDeliveriesResponse{}, f.note(ctx, r)
}

func (f *fake) SearchMessages(ctx context.Context, r *sessionv1.SearchMessagesRequest) (*sessionv1.SearchMessagesResponse, error) {
	return &sessionv1.SearchMessagesResponse{}, f.note(ctx, r)
}

func (f *fake) ForkSession(ctx context.Context, r *sessionv1.ForkSessionRequest) (*sessionv1.ForkSessionResponse, error) {
	return &sessionv1.ForkSessionResponse{Session: &sessionv1.Session{Name: "sessions/s2"}}, f.note(ctx, r)
}

func (f *fake) CompactSession(ctx context.Context, r *sessionv1.CompactSessionRequest) (*sessionv1.CompactSessionResponse, error) {
	return &sessionv1.CompactSessionResponse{}, f.note(ctx, r)
}

func (f *fake) GetCurrentUser(ctx context.Context, r *sessionv1.GetCurrentUserRequest) (*sessionv1.GetCurrentUserResponse, error) {
	return &sessionv1.GetCurrentUserResponse{User: "users/ann"}, f.note(ctx, r)
}

func (f *fake) GetUser(ctx context.Context, r *sessionv1.GetUserRequest) (*sessionv1.GetUserResponse, error) {
	return &sessionv1.GetUserResponse{User: &sessionv1.User{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) UpdateUser(ctx context.Context, r *sessionv1.UpdateUserRequest) (*sessionv1.UpdateUserResponse, error) {
	return &sessionv1.UpdateUserResponse{User: &sessionv1.User{Name: r.GetName()}}, f.note(ctx, r)
}

func (f *fake) CreateUser(ctx context.Context, r *sessionv1.CreateUserRequest) (*sessionv1.CreateUserResponse, error) {
	return &sessionv1.CreateUserResponse{User: r.GetUser()}, f.note(ctx, r)
}

func (f *fake) CreateKey(ctx context.Context, r *sessionv1.CreateKeyRequest) (*sessionv1.CreateKeyResponse, error) {
	return &sessionv1.CreateKeyResponse{Key: &sessionv1.Key{Name: "keys/k1"}, Secret: "fl_x"}, f.note(ctx, r)
}

func (f *fake) RevokeKey(ctx context.Context, r *sessionv1.RevokeKeyRequest) (*sessionv1.RevokeKeyResponse, error) {
	return &sessionv1.RevokeKeyResponse{Key: &sessionv1.Key{Name: r.GetName()}}, f.note(ctx, r)
}
