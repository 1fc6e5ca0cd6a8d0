package automation

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// secretBytes is the length of the key of a webhook's signatures.
const secretBytes = 32

// WebhookServer implements WebhookService.
type WebhookServer struct {
	sessionv1.UnimplementedWebhookServiceServer
	*Config
}

// CreateWebhook makes a webhook. A repeated request returns the same secret,
// because its caller has not seen the first answer.
func (x *WebhookServer) CreateWebhook(ctx context.Context, r *sessionv1.CreateWebhookRequest) (*sessionv1.CreateWebhookResponse, error) {
	if err := x.Webhooks.CheckURL(r.GetWebhook().GetUrl()); err != nil {
		return nil, refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_WEBHOOK_URL,
			fmt.Sprintf("The webhook's address cannot be used: %v. It must be an https:// URL at a public address, unless the operator allows others.", err),
			apierr.Field("webhook.url", err.Error()))
	}
	n := store.NewWebhook{
		Tenant: request.Key(ctx, "").Tenant, ID: r.WebhookId, Webhook: r.Webhook, Secret: newSecret(),
		Request: request.Lasting("CreateWebhook", "", r),
	}
	if n.ID == "" {
		n.ID = id.New()
	}
	answer, err := x.Store.CreateWebhook(ctx, n)
	switch {
	case errors.Is(err, store.ErrExists):
		name := "webhooks/" + n.ID
		return nil, refusal.Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a webhook %s. Choose another webhook_id, or leave it out to get a new one.", name),
			apierr.Resource("fairlead.dev/Webhook", name, "exists already"))
	case errors.Is(err, store.ErrTooMany):
		return nil, refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("There are already %d webhooks, the most allowed. Delete one first.", store.MaxWebhooks), apierr.Quota("tenant", "webhooks"))
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{Session: r.GetWebhook().GetSession(), RequestID: r.RequestId})
	}
	row, err := x.Store.GetWebhook(ctx, n.Tenant, answer.Value)
	if err != nil {
		return nil, webhookError(err, "webhooks/"+answer.Value, "")
	}
	return &sessionv1.CreateWebhookResponse{Webhook: row.Webhook, Secret: showSecret(row.Secret)}, nil
}

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	return secret
}

// showSecret formats a secret as the Standard Webhooks specification does.
func showSecret(secret []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(secret) }

// RotateWebhookSecret makes a new secret. A repeated request returns the same one, unless another rotation
// followed.
func (x *WebhookServer) RotateWebhookSecret(
	ctx context.Context, r *sessionv1.RotateWebhookSecretRequest,
) (*sessionv1.RotateWebhookSecretResponse, error) {
	tenant, id := webhookOf(ctx, r.Name)
	rotation := store.RotateWebhook{
		Tenant: tenant, ID: id, Secret: newSecret(), Overlap: x.Webhooks.SecretOverlap,
		Request: request.Lasting("RotateWebhookSecret", r.Name, r),
	}
	if r.RevokeOld {
		rotation.Overlap = 0
	}
	if _, err := x.Store.RotateWebhook(ctx, rotation); err != nil {
		return nil, webhookError(err, r.Name, r.RequestId)
	}
	row, err := x.Store.GetWebhook(ctx, tenant, id)
	if err != nil {
		return nil, webhookError(err, r.Name, "")
	}
	return &sessionv1.RotateWebhookSecretResponse{Webhook: row.Webhook, Secret: showSecret(row.Secret)}, nil
}

// webhookError is storeError for a request about one webhook.
func webhookError(err error, name, requestID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_WEBHOOK_NOT_FOUND,
			fmt.Sprintf("There is no webhook %s. List the webhooks (GET /v1/webhooks) to see which there are.", name),
			apierr.Resource("fairlead.dev/Webhook", name, "not found"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

// webhookOf returns the caller's tenant and the id in a resource name.
func webhookOf(ctx context.Context, name string) (tenant, id string) {
	return request.Key(ctx, "").Tenant, strings.TrimPrefix(name, "webhooks/")
}

// GetWebhook reads a webhook.
func (x *WebhookServer) GetWebhook(ctx context.Context, r *sessionv1.GetWebhookRequest) (*sessionv1.GetWebhookResponse, error) {
	tenant, id := webhookOf(ctx, r.Name)
	row, err := x.Store.GetWebhook(ctx, tenant, id)
	if err != nil {
		return nil, webhookError(err, r.Name, "")
	}
	return &sessionv1.GetWebhookResponse{Webhook: row.Webhook}, nil
}

// ListWebhooks lists a page of webhooks.
func (x *WebhookServer) ListWebhooks(ctx context.Context, r *sessionv1.ListWebhooksRequest) (*sessionv1.ListWebhooksResponse, error) {
	tenant := request.Key(ctx, "").Tenant
	scope := "ListWebhooks\x00" + tenant
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByID, func(after string, n int) ([]*sessionv1.Webhook, error) {
		return x.Store.ListWebhooks(ctx, tenant, after, n)
	})
	return &sessionv1.ListWebhooksResponse{Webhooks: all, NextPageToken: next}, err
}

// DeleteWebhook deletes a webhook.
func (x *WebhookServer) DeleteWebhook(ctx context.Context, r *sessionv1.DeleteWebhookRequest) (*sessionv1.DeleteWebhookResponse, error) {
	tenant, id := webhookOf(ctx, r.Name)
	_, err := x.Store.DeleteWebhook(ctx, tenant, id, request.Lasting("DeleteWebhook", r.Name, r))
	if err != nil {
		return nil, webhookError(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteWebhookResponse{}, nil
}

// ListDeliveries lists a page of a webhook's deliveries.
func (x *WebhookServer) ListDeliveries(ctx context.Context, r *sessionv1.ListDeliveriesRequest) (*sessionv1.ListDeliveriesResponse, error) {
	tenant, id := webhookOf(ctx, r.Parent)
	scope := "ListDeliveries\x00" + tenant + "\x00" + id
	list := func(after string, n int) ([]*sessionv1.Delivery, error) {
		some, err := x.Store.ListDeliveries(ctx, tenant, id, after, n)
		if err != nil {
			return nil, webhookError(err, r.Parent, "")
		}
		return some, nil
	}
	all, next, err := request.List(scope, r, refusal.Subject{}, (*sessionv1.Delivery).GetId, list)
	return &sessionv1.ListDeliveriesResponse{Deliveries: all, NextPageToken: next}, err
}
