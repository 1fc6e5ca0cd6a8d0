package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Metrics counts what turns do.
type Metrics struct {
	turns    metric.Int64Counter
	retries  metric.Int64Counter
	tokens   metric.Int64Counter
	calls    metric.Float64Histogram
	duration metric.Float64Histogram
	budgets  metric.Int64Counter
	feedback metric.Int64Counter
}

// NewMetrics creates the instruments.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	var x Metrics
	var errs [7]error
	seconds := metric.WithExplicitBucketBoundaries(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
	x.turns, errs[0] = m.Int64Counter("fairlead.turns", metric.WithDescription("Turns that ended, by state."))
	x.retries, errs[1] = m.Int64Counter("fairlead.model.retries", metric.WithDescription("Retried model calls."))
	x.tokens, errs[2] = m.Int64Counter("gen_ai.client.token.usage", metric.WithDescription("Tokens, by type and provider."), metric.WithUnit("{token}"))
	x.calls, errs[3] = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithDescription("Time of model calls."), metric.WithUnit("s"), seconds)
	x.duration, errs[4] = m.Float64Histogram("fairlead.turn.duration", metric.WithDescription("Time of turns, without their time in WAITING and QUEUED."), metric.WithUnit("s"), seconds)
	x.budgets, errs[5] = m.Int64Counter("fairlead.budget.denied", metric.WithDescription("Model calls that a budget denied, by the budget's scope, limit and whether a person is asked (soft)."))
	x.feedback, errs[6] = m.Int64Counter("fairlead.feedback", metric.WithDescription("Judgements of answers by people, by value."))
	return &x, errors.Join(errs[:]...)
}

// Finished counts a turn that has ended.
func (m *Metrics) Finished(ctx context.Context, t *state.Turn) {
	by := metric.WithAttributes(attrState.String(t.Proto.State.String()))
	m.turns.Add(ctx, 1, by)
	m.duration.Record(ctx, t.Run.WallUsed.Seconds(), by)
}

// Denied counts a reservation that a budget denied.
func (m *Metrics) Denied(ctx context.Context, d *store.Denial) {
	m.budgets.Add(ctx, 1, metric.WithAttributes(attribute.String("scope", string(d.Scope)), attribute.String("limit", string(d.Kind)), attribute.Bool("soft", d.Soft)))
}

// Retried counts a model call that is tried again.
func (m *Metrics) Retried(ctx context.Context) { m.retries.Add(ctx, 1) }

func (m *Metrics) modelCall(ctx context.Context, r state.Resolved, resp *model.Response, err error, took time.Duration) {
	var u *sessionv1.Usage
	if resp != nil {
		u = resp.Usage
	}
	m.ModelCalled(ctx, r.Provider, u, err != nil, took)
}

// ModelCalled counts a call of a model; u is nil if it is not known what it has used.
func (m *Metrics) ModelCalled(ctx context.Context, name string, u *sessionv1.Usage, failed bool, took time.Duration) {
	provider := attrProvider.String(name)
	result := attribute.String("result", "ok")
	if failed {
		result = attribute.String("result", "error")
	}
	m.calls.Record(ctx, took.Seconds(), metric.WithAttributes(provider, result))
	if u == nil {
		return
	}
	kind := attribute.Key("gen_ai.token.type")
	m.tokens.Add(ctx, state.PromptTokens(u), metric.WithAttributes(provider, kind.String("input")))
	m.tokens.Add(ctx, u.GetOutputTokens(), metric.WithAttributes(provider, kind.String("output")))
}
