package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// lastPause bounds the pauses between attempts; each is four times the one before.
	lastPause  = 4 * time.Hour
	pauseGrows = 4
	// giveUp is the time between the turn's end and the last attempt.
	giveUp = 24 * time.Hour
	// perTenant and perHost bound the concurrent deliveries of this replica for a
	// tenant, and for a tenant to one host. Further ones are tried later.
	perTenant = 4
	perHost   = 2
	busyPause = time.Second
)

// Deliverer delivers messages. It may be used concurrently.
type Deliverer struct {
	config Config
	store  store.Store
	sender *sender
	count  metric.Int64Counter
	log    *slog.Logger

	mu   sync.Mutex
	busy map[string]int // concurrent deliveries, by tenant and by tenant and host
}

// New returns a deliverer. Close it when nothing is delivered any more.
func New(c Config, s store.Store, m metric.Meter, log *slog.Logger, version string) (*Deliverer, error) {
	count, err := m.Int64Counter("fairlead.webhook.attempts",
		metric.WithDescription("Attempts to deliver a message to a webhook: delivered, to be retried, or failed for good."))
	if err != nil {
		return nil, fmt.Errorf("make the webhooks' metrics: %w", err)
	}
	return &Deliverer{config: c, store: s, sender: newSender(c, version), count: count, log: log, busy: map[string]int{}}, nil
}

// Close closes idle connections.
func (d *Deliverer) Close() { d.sender.client.CloseIdleConnections() }

// Deliver makes one attempt for a job of the kind store.JobWebhook. A message
// that was accepted, but whose result could not be stored, is sent again with
// the same id.
func (d *Deliverer) Deliver(ctx context.Context, j store.Job) (*store.Job, error) {
	row, err := d.store.GetDelivery(ctx, j.Tenant, j.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // the webhook was deleted
	}
	if err != nil {
		return nil, err
	}
	if row.Delivery.State != store.DeliveryPending {
		return nil, nil // stored, but not the job's end
	}
	done, ok := d.enter(j.Tenant, row.Webhook.GetUrl())
	if !ok {
		return &store.Job{Due: row.Now.Add(busyPause + rand.N(busyPause))}, nil //nolint:gosec // no secret: it spreads the attempts
	}
	defer done()
	turn, err := d.store.GetTurn(ctx, row.Key, row.TurnID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // the session was deleted, and the delivery with it
	}
	if err != nil {
		return nil, err
	}
	body, err := newBody(turn)
	if err != nil {
		return nil, err
	}
	a := d.send(ctx, message{id: row.Delivery.Id, url: row.Webhook.GetUrl(), secrets: secretsOf(row), body: body})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the server stops: this does not count as an attempt
	}
	return d.note(ctx, row, a)
}

// secretsOf returns the keys that sign a message now, the newest first.
func secretsOf(row *store.DeliveryRow) [][]byte {
	if len(row.OldSecret) > 0 && row.Now.Before(row.OldUntil) {
		return [][]byte{row.Secret, row.OldSecret}
	}
	return [][]byte{row.Secret}
}

// send leaves some of the job's time for storing the result.
func (d *Deliverer) send(ctx context.Context, m message) answer {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*9/10)
		defer cancel()
	}
	return d.sender.send(ctx, m)
}

// note stores the result of an attempt, and returns when the next one is due.
func (d *Deliverer) note(ctx context.Context, row *store.DeliveryRow, a answer) (*store.Job, error) {
	out := store.Delivered{
		Tenant: row.Tenant, ID: row.Delivery.Id, Attempts: row.Delivery.Attempts + 1, LastStatus: int32(a.status), State: store.DeliveryDelivered,
	}
	var again *store.Job
	if a.err != nil {
		out.LastError, out.State = a.err.Error(), store.DeliveryFailed
		deadline := row.Delivery.CreateTime.AsTime().Add(giveUp)
		if a.status != http.StatusGone && row.Now.Before(deadline) {
			out.State, out.Next = store.DeliveryPending, row.Now.Add(max(d.config.pause(out.Attempts), a.wait))
			if out.Next.After(deadline) {
				out.Next = deadline
			}
			again = &store.Job{Due: out.Next}
		}
	}
	if err := d.store.Delivered(ctx, out); err != nil {
		return nil, err
	}
	outcome := map[string]string{store.DeliveryDelivered: "delivered", store.DeliveryPending: "retry", store.DeliveryFailed: "failed"}[out.State]
	d.count.Add(ctx, 1, metric.WithAttributes(attribute.String("fairlead.webhook.outcome", outcome)))
	if out.State == store.DeliveryFailed {
		d.log.WarnContext(ctx, "a webhook's message is given up", "tenant", row.Tenant, "webhook", row.Webhook.GetName(),
			"delivery", out.ID, "attempts", out.Attempts, "status", out.LastStatus, "error", a.err)
	}
	return again, nil
}

// pause returns the wait after this many attempts, varied by a fifth.
func (c Config) pause(attempts int32) time.Duration {
	b := backoff.ExponentialBackOff{InitialInterval: c.FirstPause, MaxInterval: lastPause, Multiplier: pauseGrows, RandomizationFactor: 0.2}
	b.Reset()
	wait := b.NextBackOff()
	for range min(attempts, 20) - 1 {
		wait = b.NextBackOff()
	}
	return wait
}

// enter takes a slot for deliveries to a host, if one is free; done releases it.
func (d *Deliverer) enter(tenant, address string) (done func(), ok bool) {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	byTenant, byHost := tenant, tenant+"\x00"+host
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[byTenant] >= perTenant || d.busy[byHost] >= perHost {
		return nil, false
	}
	d.busy[byTenant]++
	d.busy[byHost]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, k := range []string{byTenant, byHost} {
			if d.busy[k]--; d.busy[k] == 0 {
				delete(d.busy, k)
			}
		}
	}, true
}
