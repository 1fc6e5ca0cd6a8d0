package plan

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Webhook is a webhook's row.
type Webhook struct {
	Tenant, ID, Session, URL string // Session is an id; empty: all
	Secret                   []byte
	CreateTime               time.Time
	OldSecret                []byte
	OldUntil                 *time.Time // nil: no old secret
}

// ForWebhook returns the row of a new webhook at the time now. session is the
// one that it is for, if any.
func ForWebhook(n store.NewWebhook, session string, now time.Time) *Webhook {
	return &Webhook{Tenant: n.Tenant, ID: n.ID, Session: session, URL: n.Webhook.GetUrl(), Secret: n.Secret, CreateTime: now}
}

// OldUntil returns when the secret before a rotation at the time now ends; nil: at
// once.
func OldUntil(overlap time.Duration, now time.Time) *time.Time {
	if overlap <= 0 {
		return nil
	}
	until := now.Add(overlap)
	return &until
}

// Row returns the webhook with its secret.
func (w *Webhook) Row() *store.WebhookRow {
	out := &sessionv1.Webhook{Name: WebhookName(w.ID), Url: w.URL, CreateTime: timestamppb.New(w.CreateTime)}
	if w.Session != "" {
		out.Session = SessionName(w.Session)
	}
	row := &store.WebhookRow{Webhook: out, Secret: w.Secret}
	if w.OldUntil != nil {
		row.OldSecret, row.OldUntil = w.OldSecret, *w.OldUntil
		out.OldSecretExpireTime = timestamppb.New(*w.OldUntil)
	}
	return row
}

// WebhookName returns the resource name of the webhook with this id.
func WebhookName(id string) string { return "webhooks/" + id }

// Delivery is a delivery's row.
type Delivery struct {
	store.Key
	ID, Webhook, TurnID  string
	State, LastError     string
	Attempts, LastStatus int32
	CreateTime           time.Time
	NextTime             *time.Time // nil unless it is pending
}

// Proto returns the public form of the row.
func (d *Delivery) Proto() *sessionv1.Delivery {
	out := &sessionv1.Delivery{
		Id: d.ID, Turn: TurnName(d.Session, d.TurnID), State: d.State, Attempts: d.Attempts,
		LastError: d.LastError, LastStatus: d.LastStatus, CreateTime: timestamppb.New(d.CreateTime),
	}
	if d.NextTime != nil {
		out.NextTime = timestamppb.New(*d.NextTime)
	}
	return out
}
