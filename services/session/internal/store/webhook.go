package store

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	// MaxWebhooks bounds the webhooks of one tenant.
	MaxWebhooks = 50
	// KeepDeliveries is how long deliveries are kept.
	KeepDeliveries = 7 * 24 * time.Hour
)

// NewWebhook describes a webhook to be created.
type NewWebhook struct {
	Tenant, ID string
	// Webhook holds the address and, for the webhook of one session, the
	// session.
	Webhook *sessionv1.Webhook
	// Secret is the key of its signatures.
	Secret  []byte
	Request Request
}

// RotateWebhook is a new secret for a webhook.
type RotateWebhook struct {
	Tenant, ID string
	Secret     []byte
	// Overlap is how long the old secret signs beside the new one; 0: it stops
	// at once.
	Overlap time.Duration
	Request Request
}

// WebhookRow is a webhook with its secret.
type WebhookRow struct {
	Webhook *sessionv1.Webhook
	Secret  []byte
	// OldSecret signs, too, until OldUntil. Both are zero if there is none.
	OldSecret []byte
	OldUntil  time.Time
}

// States of a Delivery.
const (
	DeliveryPending   = "PENDING"
	DeliveryDelivered = "DELIVERED"
	DeliveryFailed    = "FAILED"
)

// DeliveryRow is the data to send a message.
type DeliveryRow struct {
	WebhookRow
	Key      // the turn's session
	TurnID   string
	Delivery *sessionv1.Delivery
	// Now is the database's time.
	Now time.Time
}

// Delivered is the result of an attempt.
type Delivered struct {
	Tenant, ID string
	State      string
	Attempts   int32
	LastError  string
	LastStatus int32
	Next       time.Time // zero unless it is pending
}

// Webhooks stores webhooks and their deliveries.
//
// A commit in which a turn ends creates, in the same transaction, one delivery
// and one job of the kind JobWebhook for each matching webhook. The job's id is
// the delivery's: the webhook's, `_` and the turn's. Deliveries, and the
// webhooks of one session, go with the session.
type Webhooks interface {
	// CreateWebhook creates a webhook. ErrNotFound without the session that it is
	// for, ErrExists, ErrTooMany, ErrRequestIDReused.
	CreateWebhook(ctx context.Context, n NewWebhook) (Answer, error)
	// GetWebhook reads a webhook, or ErrNotFound.
	GetWebhook(ctx context.Context, tenant, id string) (*WebhookRow, error)
	// ListWebhooks lists a tenant's webhooks behind the one with the id after, by id.
	ListWebhooks(ctx context.Context, tenant, after string, limit int) ([]*sessionv1.Webhook, error)
	// RotateWebhook makes the current secret the old one, replacing an older one,
	// and sets the new one. ErrNotFound, ErrRequestIDReused.
	RotateWebhook(ctx context.Context, r RotateWebhook) (Answer, error)
	// DeleteWebhook deletes a webhook with its deliveries and their jobs.
	// ErrNotFound, ErrRequestIDReused.
	DeleteWebhook(ctx context.Context, tenant, id string, r Request) (Answer, error)
	// GetDelivery reads the data to send a message, or ErrNotFound.
	GetDelivery(ctx context.Context, tenant, id string) (*DeliveryRow, error)
	// ListDeliveries lists a webhook's deliveries behind the one with the id
	// after, the newest first. ErrNotFound without the webhook.
	ListDeliveries(ctx context.Context, tenant, webhook, after string, limit int) ([]*sessionv1.Delivery, error)
	// Delivered records the result of an attempt, and removes deliveries of the
	// tenant that are older than KeepDeliveries.
	Delivered(ctx context.Context, d Delivered) error
}
