// Package telemetry sets up a process's logs, traces and metrics.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Config is the section "log" of every program. Traces have no keys: the standard variables OTEL_* configure them.
type Config struct {
	Level  string `key:"level" help:"lowest level of log lines: debug, info, warn or error"`
	Format string `key:"format" help:"format of the log: json or text"`
}

// DefaultConfig returns the configuration that logs from info on as JSON.
func DefaultConfig() Config { return Config{Level: "info", Format: "json"} }

// Validate checks level and format.
func (c Config) Validate() error {
	var faults []error
	if _, err := c.level(); err != nil {
		faults = append(faults, err)
	}
	if c.Format != "json" && c.Format != "text" && c.Format != "" {
		faults = append(faults, fmt.Errorf("format: %q is neither json nor text", c.Format))
	}
	return errors.Join(faults...)
}

func (c Config) level() (slog.Level, error) {
	switch c.Level {
	case "debug":
		return slog.LevelDebug, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("level: %q is not debug, info, warn or error", c.Level)
}

// Telemetry is the result of Setup. Its zero value is not usable; tests use
// Discard.
type Telemetry struct {
	// Log is the process's logger; lines written with a context carry its trace_id and span_id.
	Log *slog.Logger

	registry *prometheus.Registry
	shutdown []func(context.Context) error
}

// Setup makes the process's telemetry and sets OpenTelemetry's globals: tracer provider, meter provider,
// error handler and the W3C propagator. It also sets the defaults of the packages log and slog, for
// libraries. Logs go to w.
//
// Traces are sent by OTLP when OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a
// receiver, unless OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none; the protocol is
// OTEL_EXPORTER_OTLP_PROTOCOL, http/protobuf if unset. A missing receiver delays and fails nothing.
//
// Call Shutdown when everything else has ended, otherwise the last spans are lost.
func Setup(ctx context.Context, service, version string, c Config, w io.Writer) (*Telemetry, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	log := slog.New(newHandler(c, w)).With("service", service)
	slog.SetLogLoggerLevel(slog.LevelWarn)
	slog.SetDefault(slog.New(stray{log.Handler()}))
	t := &Telemetry{Log: log, registry: prometheus.NewRegistry()}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithFromEnv()) // last, so that OTEL_SERVICE_NAME wins
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process for telemetry: %w", err)
	}
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("telemetry failed", "error", err) }))
	if err := t.setupMetrics(res); err != nil {
		return nil, err
	}
	if err := t.setupTraces(ctx, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// Discard returns the telemetry of a test or a tool: logs go to log, nothing else is kept, and no global is
// set.
func Discard(log *slog.Logger) *Telemetry {
	return &Telemetry{Log: log, registry: prometheus.NewRegistry()}
}

func (t *Telemetry) setupMetrics(res *resource.Resource) error {
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprom.New(otelprom.WithRegisterer(t.registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res), sdkmetric.WithView(closedLabels()))
	otel.SetMeterProvider(mp)
	t.shutdown = append(t.shutdown, mp.Shutdown)
	return nil
}

// closedLabels drops labels with values of the client's choice from the metrics of RPCs, so that the number
// of series stays bounded.
func closedLabels() sdkmetric.View {
	open := attribute.NewDenyKeysFilter("server.address", "server.port", "client.address", "client.port",
		"network.peer.address", "network.peer.port", "url.path", "user_agent.original")
	return sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{AttributeFilter: open})
}

func (t *Telemetry) setupTraces(ctx context.Context, res *resource.Resource) error {
	if !tracesWanted() {
		return nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up the OTLP trace exporter from the OTEL_* variables: %w", err)
	}
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	otel.SetTracerProvider(tp)
	t.shutdown = append(t.shutdown, tp.Shutdown)
	return nil
}

func tracesWanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	protocol := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	}
	return nil, fmt.Errorf("the protocol %q is neither grpc nor http/protobuf", protocol)
}

// MetricsHandler serves the metrics in the format of Prometheus.
func (t *Telemetry) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// flushTimeout bounds the sending of pending data.
const flushTimeout = 5 * time.Second

// Shutdown sends pending data, for at most five seconds and also when ctx has ended. It may be called once.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	var faults []error
	for i := len(t.shutdown) - 1; i >= 0; i-- {
		faults = append(faults, t.shutdown[i](ctx))
	}
	t.shutdown = nil
	return errors.Join(faults...)
}
