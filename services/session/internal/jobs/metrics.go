package jobs

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	attrKind    = attribute.Key("fairlead.job.kind")
	attrOutcome = attribute.Key("fairlead.job.outcome")
	attrTenant  = attribute.Key("fairlead.tenant")
)

// Metrics counts what jobs do.
type Metrics struct {
	runs     metric.Int64Counter
	lag      metric.Float64Histogram
	duration metric.Float64Histogram
}

// NewMetrics creates the instruments.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	var x Metrics
	var errs [3]error
	seconds := metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 300, 1800)
	x.runs, errs[0] = m.Int64Counter("fairlead.jobs", metric.WithDescription("Completed attempts of jobs, by kind and outcome."))
	x.lag, errs[1] = m.Float64Histogram("fairlead.job.lag", metric.WithDescription("Time from when a job was due until it began."), metric.WithUnit("s"), seconds)
	x.duration, errs[2] = m.Float64Histogram("fairlead.job.duration", metric.WithDescription("Time of one attempt of a job."), metric.WithUnit("s"), seconds)
	return &x, errors.Join(errs[:]...)
}

func (m *Metrics) claimed(ctx context.Context, j store.Job) {
	// The clocks of the database and of this machine may differ a little.
	m.lag.Record(ctx, max(0, time.Since(j.Due).Seconds()), metric.WithAttributes(attrKind.String(string(j.Kind))))
}

func (m *Metrics) ended(ctx context.Context, j store.Job, how string, took time.Duration) {
	by := metric.WithAttributes(attrKind.String(string(j.Kind)), attrOutcome.String(how))
	m.runs.Add(ctx, 1, by)
	m.duration.Record(ctx, took.Seconds(), by)
}
