package stream

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics counts streams, by RPC or by the protocol of their clients.
type Metrics struct {
	open   metric.Int64UpDownCounter
	frames metric.Int64Counter
	slow   metric.Int64Counter
}

// NewMetrics returns the metrics of the gateway's streams.
func NewMetrics() (*Metrics, error) {
	meter := otel.Meter("github.com/fairlead/fairlead/services/gateway")
	var m Metrics
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

// By names what a stream is counted under.
func By(rpc string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("rpc.method", rpc))
}

// Opened counts a stream until the returned function is called.
func (m *Metrics) Opened(ctx context.Context, by metric.MeasurementOption) (closed func()) {
	m.open.Add(ctx, 1, by)
	return func() { m.open.Add(context.WithoutCancel(ctx), -1, by) }
}

// Sent counts a message of a stream.
func (m *Metrics) Sent(ctx context.Context, by metric.MeasurementOption) { m.frames.Add(ctx, 1, by) }

// Dropped counts a stream that was cut because its reader was too slow.
func (m *Metrics) Dropped(ctx context.Context, by metric.MeasurementOption) { m.slow.Add(ctx, 1, by) }
