package sandbox

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

func TestACommandIsASpanAndCounted(t *testing.T) {
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	o, err := newObserver("basic")
	if err != nil {
		t.Fatal(err)
	}
	ctx, parent := otel.Tracer("test").Start(t.Context(), "call")
	call := box.Call{Key: box.Key{Tenant: "t", Session: "s"}, ID: "c"}
	o.Started(ctx, call, []string{"sh", "-c", "secret"})(box.Outcome{Reason: box.TimedOut, Wall: time.Second})
	parent.End()
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Name() != "exec" || ended[0].Parent().SpanID() != parent.SpanContext().SpanID() || ended[0].Status().Code != codes.Error {
		t.Fatalf("spans %v", ended)
	}
	got := attribute.NewSet(ended[0].Attributes()...)
	for key, want := range map[attribute.Key]string{"fairlead.call_id": "c", "fairlead.exit_reason": "timed_out", "process.executable.name": "sh"} {
		if v, _ := got.Value(key); v.AsString() != want {
			t.Errorf("%s is %v", key, v.AsString())
		}
	}
	if err := observeLeftovers(func() int { return 3 }); err != nil {
		t.Fatal(err)
	}
	var m metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &m); err != nil || len(m.ScopeMetrics) != 1 || len(m.ScopeMetrics[0].Metrics) != 5 {
		t.Fatalf("metrics %v, %v", m, err)
	}
	left, _ := m.ScopeMetrics[0].Metrics[4].Data.(metricdata.Gauge[int64])
	if len(left.DataPoints) != 1 || left.DataPoints[0].Value != 3 {
		t.Errorf("what could not be deleted is %v", left)
	}
}
