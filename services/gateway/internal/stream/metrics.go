package stream

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics counts streams, by RPC.
type metrics struct {
	open   metric.Int64UpDownCounter
	frames metric.Int64Counter
	slow   metric.Int64Counter
}

func newMetrics() (*metrics, error) {
	meter := otel.Meter("github.com/fairlead/fairlead/services/gateway")
	var m metrics
	var err error
	if m.open, err = meter.Int64UpDownCounter("fairlead.gateway.streams.open",
		metric.WithDescription("Streams that are open"), metric.WithUnit("{stream}")); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	if m.frames, err = meter.Int64Counter("fairlead.gateway.frames.sent",
		metric.WithDescription("Events and other messages that were sent on streams"), metric.WithUnit("{frame}")); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	if m.slow, err = meter.Int64Counter("fairlead.gateway.readers.dropped",
		metric.WithDescription("Streams that were cut because their reader was too slow"), metric.WithUnit("{stream}")); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return &m, nil
}

// opened counts a stream until the returned function is called.
func (m *metrics) opened(ctx context.Context, rpc string) (closed func()) {
	by := metric.WithAttributes(attribute.String("rpc.method", rpc))
	m.open.Add(ctx, 1, by)
	return func() { m.open.Add(context.WithoutCancel(ctx), -1, by) }
}
