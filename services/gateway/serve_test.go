package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/gateway/internal/stream/streamtest"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestOpenStreamsEndWhenTheServerStops(t *testing.T) {
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		<-st.Context().Done()
		return st.Context().Err()
	}}
	conn := rpctest.Dial(t, f.register)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := gateway.New(t.Context(), gateway.DefaultConfig(), gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.DefaultConfig()
	c.HTTP, c.Grace = "127.0.0.1:0", 30*time.Second
	at := make(chan string, 1)
	c.OnListen = func(_, address string) { at <- address }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(ctx, c, telemetry.Discard(log), nil, s) }()
	srv := &httptest.Server{URL: "http://" + <-at}
	events := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = events.Body.Close() }()
	lines := send(t, t.Context(), srv, request{"GET", eventsPath + ":stream", "", http.Header{"Accept": {"application/x-ndjson"}}})
	defer func() { _ = lines.Body.Close() }()
	begin := time.Now()
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if took := time.Since(begin); took > c.Grace/3 {
		t.Errorf("stopping took %s", took)
	}
	all, err := streamtest.NewReader(events.Body).All()
	if err != nil || len(all) != 1 || all[0].Event != "stream.error" || !strings.Contains(all[0].Data, "STOPPING") {
		t.Errorf("frames %+v, %v", all, err)
	}
	if body, err := io.ReadAll(lines.Body); err != nil || !strings.Contains(string(body), "STOPPING") {
		t.Errorf("lines %q, %v", body, err)
	}
}

func TestTheGatewayIsReadyWhenSessionAnswers(t *testing.T) {
	state := health.NewServer()
	conn := rpctest.Dial(t, func(s grpc.ServiceRegistrar) { healthv1.RegisterHealthServer(s, state) })
	s, err := gateway.New(t.Context(), gateway.DefaultConfig(), gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("Ready: %v", err)
	}
	state.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("Ready, when session is there but finds itself not ready: %v", err)
	}
	_ = conn.Close()
	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready, when session cannot be reached: no error")
	}
}

func TestAnUnreachableServiceIsUnavailable(t *testing.T) {
	conn, err := rpc.Dial("127.0.0.1:1") // nothing listens on that port
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s, err := gateway.New(t.Context(), gateway.DefaultConfig(), gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	for _, r := range []request{{"GET", "/v1/sessions", "", nil}, {"GET", eventsPath, "", wantSSE}} {
		got := do(t, srv, r)
		if p := problemOf(t, got.body); got.code != http.StatusServiceUnavailable || p.reason() != "SERVICE_UNAVAILABLE" ||
			strings.Contains(got.body, "127.0.0.1") || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d: %s", r.path, got.code, got.body)
		}
	}
}

func TestATraceGoesThroughTheGateway(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	oldTP, oldProp := otel.GetTracerProvider(), otel.GetTextMapPropagator()
	otel.SetTracerProvider(tp)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() {
		otel.SetTracerProvider(oldTP)
		otel.SetTextMapPropagator(oldProp)
	})
	srv := serve(t, &fake{events: replay(1)})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	header := http.Header{"Traceparent": {"00-" + trace + "-b7ad6b7169203331-01"}}
	do(t, srv, request{"GET", "/v1/sessions/s1", "", header})
	header.Set("Accept", "text/event-stream")
	do(t, srv, request{"GET", eventsPath, "", header})
	srv.Close() // handlers, and so their spans, have ended
	got := map[string]int{}
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID().String() != trace {
			t.Errorf("span %s is of trace %s", s.Name(), s.SpanContext().TraceID())
		}
		got[s.SpanKind().String()+" "+s.Name()]++
	}
	for _, want := range []string{
		"server GET /v1/sessions/{session}", "client fairlead.session.v1.SessionService/GetSession",
		"server GET /v1/sessions/{session}/events", "client fairlead.session.v1.SessionService/StreamEvents",
	} {
		if got[want] != 1 {
			t.Errorf("no span %q in %v", want, got)
		}
	}
}
