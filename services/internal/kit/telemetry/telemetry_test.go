package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"go.opentelemetry.io/otel/attribute"

	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noTraces keeps the environment of whoever runs the tests out of them.
func noTraces(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED",
		"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} {
		t.Setenv(name, "")
	}
}

func setup(t *testing.T, c telemetry.Config, w io.Writer) *telemetry.Telemetry {
	t.Helper()
	before := otel.GetTracerProvider()
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	tel, err := telemetry.Setup(t.Context(), "svc", "v1", c, w)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func shutdown(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestLogCarriesTheTrace(t *testing.T) {
	noTraces(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	var b bytes.Buffer
	tel := setup(t, telemetry.DefaultConfig(), &b)
	defer func() { _ = tel.Shutdown(context.Background()) }() // the receiver takes no spans
	ctx, span := otel.Tracer("t").Start(t.Context(), "work")
	defer span.End()
	tel.Log.With("a", 1).InfoContext(ctx, "inside")
	tel.Log.Info("outside")
	tel.Log.Debug("hidden")
	dec := json.NewDecoder(&b)
	var inside, outside map[string]any
	if err := dec.Decode(&inside); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(&outside); err != nil {
		t.Fatal(err)
	}
	if inside["trace_id"] != span.SpanContext().TraceID().String() || inside["span_id"] != span.SpanContext().SpanID().String() || inside["service"] != "svc" || inside["a"] != 1.0 {
		t.Errorf("inside: %v", inside)
	}
	if _, ok := outside["trace_id"]; ok || outside["msg"] != "outside" || dec.More() {
		t.Errorf("outside: %v, more: %v", outside, dec.More())
	}
}

func TestTextLogAndLevels(t *testing.T) {
	noTraces(t)
	var b bytes.Buffer
	tel := setup(t, telemetry.Config{Level: "error", Format: "text"}, &b)
	defer shutdown(t, tel)
	tel.Log.Warn("no")
	tel.Log.Error("yes")
	if got := b.String(); strings.Contains(got, "no") && strings.Contains(got, "msg=no") || !strings.Contains(got, "level=ERROR msg=yes service=svc") {
		t.Errorf("got %q", got)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	_, err := telemetry.Setup(t.Context(), "svc", "v1", telemetry.Config{Level: "loud", Format: "xml"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `level: "loud"`) || !strings.Contains(err.Error(), `format: "xml"`) {
		t.Errorf("got %v", err)
	}
}

func TestMetrics(t *testing.T) {
	noTraces(t)
	tel := setup(t, telemetry.DefaultConfig(), io.Discard)
	defer shutdown(t, tel)
	n, err := otel.Meter("t").Int64Counter("turns_started")
	if err != nil {
		t.Fatal(err)
	}
	n.Add(t.Context(), 3, metric.WithAttributes(attribute.String("state", "ok"), attribute.String("user_agent.original", "whatever a client says")))
	rec := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	body := rec.Body.String()
	if rec.Code != http.StatusOK || !strings.Contains(body, `turns_started_total{state="ok"} 3`) || !strings.Contains(body, "go_goroutines") || strings.Contains(body, "whatever") {
		t.Errorf("%d %s", rec.Code, body)
	}
}

func TestTracesAreOffUnlessAskedFor(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"without a receiver":              {},
		"when the SDK is disabled":        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"when the traces' exporter is no": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			noTraces(t)
			for k, v := range env {
				t.Setenv(k, v)
			}
			tel := setup(t, telemetry.DefaultConfig(), io.Discard)
			defer shutdown(t, tel)
			_, span := otel.Tracer("t").Start(t.Context(), "work")
			if span.IsRecording() {
				t.Error("spans are recorded")
			}
			span.End()
		})
	}
}

func TestUnknownProtocol(t *testing.T) {
	noTraces(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")
	if _, err := telemetry.Setup(t.Context(), "svc", "v1", telemetry.DefaultConfig(), io.Discard); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v", err)
	}
}

// receiver takes spans by both protocols.
type receiver struct {
	collectorv1.UnimplementedTraceServiceServer
	mu   sync.Mutex
	seen []string // "service/span"
}

func (r *receiver) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		service := ""
		for _, a := range rs.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				r.seen = append(r.seen, service+"/"+s.GetName())
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var in collectorv1.ExportTraceServiceRequest
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = r.Export(req.Context(), &in)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func TestTracesReachTheReceiver(t *testing.T) {
	for name, c := range map[string]struct{ protocol, serviceName, want string }{
		"by gRPC":                               {"grpc", "", "svc/work"},
		"by HTTP when nothing is said":          {"", "", "svc/work"},
		"under the name that OTEL_SERVICE_NAME": {"http/protobuf", "other", "other/work"},
	} {
		t.Run(name, func(t *testing.T) {
			noTraces(t)
			r := &receiver{}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listen(t, r, c.protocol == "grpc"))
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
			t.Setenv("OTEL_SERVICE_NAME", c.serviceName)
			tel := setup(t, telemetry.DefaultConfig(), io.Discard)
			_, span := otel.Tracer("t").Start(t.Context(), "work")
			span.End()
			shutdown(t, tel)
			if len(r.seen) != 1 || r.seen[0] != c.want {
				t.Errorf("the receiver saw %q", r.seen)
			}
		})
	}
}

// listen serves r until the test ends, and returns its endpoint.
func listen(t *testing.T, r *receiver, overGRPC bool) string {
	t.Helper()
	if !overGRPC {
		s := httptest.NewServer(r)
		t.Cleanup(s.Close)
		return s.URL
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(s, r)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}
