//go:build linux

package sandbox

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

const scope = "github.com/fairlead/fairlead/services/sandbox"

// observer is a box.Observer: it makes a span for each command, in the trace of its caller, and metrics. Spans contain no arguments of commands, which may hold the model's output.
type observer struct {
	tracer   trace.Tracer
	started  metric.Int64Counter
	ended    metric.Int64Counter
	running  metric.Int64UpDownCounter
	duration metric.Float64Histogram
	level    attribute.KeyValue
}

// newObserver makes an observer on the global providers.
func newObserver(level string) (*observer, error) {
	m := otel.Meter(scope)
	o := &observer{tracer: otel.Tracer(scope), level: attribute.String("fairlead.sandbox.level", level)}
	var err error
	check := func(fault error) {
		if err == nil {
			err = fault
		}
	}
	var fault error
	o.started, fault = m.Int64Counter("fairlead.sandbox.execs.started", metric.WithDescription("commands that were started"))
	check(fault)
	o.ended, fault = m.Int64Counter("fairlead.sandbox.execs.ended", metric.WithDescription("commands that ended, by reason"))
	check(fault)
	o.running, fault = m.Int64UpDownCounter("fairlead.sandbox.execs.running", metric.WithDescription("commands that run"))
	check(fault)
	o.duration, fault = m.Float64Histogram("fairlead.sandbox.exec.duration", metric.WithUnit("s"), metric.WithDescription("how long commands ran"))
	check(fault)
	if err != nil {
		return nil, fmt.Errorf("make the metrics of commands: %w", err)
	}
	return o, nil
}

// observeLeftovers registers a gauge of the trees that could not be deleted.
func observeLeftovers(count func() int) error {
	_, err := otel.Meter(scope).Int64ObservableGauge("fairlead.sandbox.leftovers", metric.WithDescription("folders that are no longer used and could not be deleted"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(count()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make the metric of what could not be deleted: %w", err)
	}
	return nil
}

// Started implements box.Observer.
func (o *observer) Started(ctx context.Context, c box.Call, argv []string) func(box.Outcome) {
	_, span := o.tracer.Start(ctx, "exec", trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		o.level,
		attribute.String("process.executable.name", argv[0]),
		attribute.Int("process.args_count", len(argv)),
		attribute.String("fairlead.tenant", c.Tenant),
		attribute.String("fairlead.session", c.Session),
		attribute.String("fairlead.call_id", c.ID),
	))
	ctx = context.WithoutCancel(ctx) // the command outlives the request
	o.started.Add(ctx, 1)
	o.running.Add(ctx, 1)
	return func(out box.Outcome) {
		reason := attribute.String("fairlead.exit_reason", string(out.Reason))
		span.SetAttributes(reason, attribute.Int("process.exit.code", out.ExitCode), attribute.Bool("fairlead.output_truncated", out.Truncated))
		if out.Reason != box.Exited {
			span.SetStatus(codes.Error, string(out.Reason))
		}
		span.End()
		o.running.Add(ctx, -1)
		o.ended.Add(ctx, 1, metric.WithAttributes(reason))
		o.duration.Record(ctx, out.Wall.Seconds(), metric.WithAttributes(reason))
	}
}
