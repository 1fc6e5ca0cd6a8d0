package rpc_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

// One turn is one trace: the spans of caller and callee hang together, and health checks make none.
func TestTraceCrossesTheWire(t *testing.T) {
	provider, propagator := otel.GetTracerProvider(), otel.GetTextMapPropagator()
	defer func() { otel.SetTracerProvider(provider); otel.SetTextMapPropagator(propagator) }()
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	otel.SetTextMapPropagator(propagation.TraceContext{})

	var inside trace.SpanContext
	cc := rpctest.Dial(t, (&notes{take: func(ctx context.Context, in *dynamicpb.Message) (*dynamicpb.Message, error) {
		inside = trace.SpanContextFromContext(ctx)
		return in, nil
	}}).RegisterPublic)
	ctx, span := otel.Tracer("t").Start(t.Context(), "turn")
	if _, err := take(ctx, cc, newNote("x")); err != nil {
		t.Fatal(err)
	}
	_, _ = healthv1.NewHealthClient(cc).Check(ctx, &healthv1.HealthCheckRequest{}) // nobody serves it here
	span.End()
	if !inside.IsValid() || inside.TraceID() != span.SpanContext().TraceID() {
		t.Errorf("the handler is in trace %s, its caller in %s", inside.TraceID(), span.SpanContext().TraceID())
	}
	for _, s := range recorder.Started() {
		if s.Name() != "turn" && s.Name() != unaryMethod[1:] {
			t.Errorf("a span %q", s.Name())
		}
	}
	if n := len(recorder.Started()); n != 3 {
		t.Errorf("%d spans, want the caller's, the client's and the server's", n)
	}
}
