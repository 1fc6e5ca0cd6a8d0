package gateway_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/stream/streamtest"
)

func TestStreamsAreMeasured(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	old := otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(old) })
	goOn := make(chan struct{})
	srv := serve(t, &fake{events: func(r *sessionv1.StreamEventsRequest, st eventStream) error {
		if err := replay(3)(r, st); err != nil {
			return err
		}
		<-goOn
		return nil
	}})
	resp := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = resp.Body.Close() }()
	events := streamtest.NewReader(resp.Body)
	for range 3 {
		if _, err := events.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if open := sum(t, reader, "fairlead.gateway.streams.open"); open != 1 {
		t.Errorf("%d streams are open, want 1", open)
	}
	close(goOn)
	if _, err := events.All(); err != nil {
		t.Fatal(err)
	}
	srv.Close() // the handler has returned
	for name, want := range map[string]int64{"fairlead.gateway.streams.open": 0, "fairlead.gateway.frames.sent": 3} {
		if got := sum(t, reader, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// sum returns the value of a counter, over all its labels.
func sum(t *testing.T, reader sdkmetric.Reader, name string) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if s, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range s.DataPoints {
					total += p.Value
				}
			}
		}
	}
	return total
}
