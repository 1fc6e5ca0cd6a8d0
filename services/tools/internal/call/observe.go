package call

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0" // the last version with the GenAI conventions
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// scope is the name of the instrumentation.
const scope = "github.com/fairlead/fairlead/services/tools"

// Keys of our own on spans and metrics.
const (
	keyTenant   = attribute.Key("fairlead.tenant")
	keySession  = attribute.Key("fairlead.session")
	keyEpoch    = attribute.Key("fairlead.epoch")
	keyOutcome  = attribute.Key("fairlead.call.outcome")
	keyResumed  = attribute.Key("fairlead.call.resumed")
	keyDecision = attribute.Key("fairlead.decision")
	keyRule     = attribute.Key("fairlead.decision.rule")
)

// observer makes the spans and metrics of calls. None of them contains
// arguments or results.
type observer struct {
	tools    *registry.Registry
	tracer   trace.Tracer
	calls    metric.Int64Counter
	duration metric.Float64Histogram
	active   metric.Int64UpDownCounter
}

func newObserver(tools *registry.Registry) (*observer, error) {
	meter := otel.Meter(scope)
	calls, err1 := meter.Int64Counter("fairlead.tools.calls", metric.WithUnit("{call}"), metric.WithDescription("Calls that ended, by tool and outcome."))
	duration, err2 := meter.Float64Histogram("fairlead.tools.call.duration", metric.WithUnit("s"), metric.WithDescription("How long calls took."))
	active, err3 := meter.Int64UpDownCounter("fairlead.tools.calls.running", metric.WithUnit("{call}"), metric.WithDescription("Calls that run now."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return &observer{tools: tools, tracer: otel.Tracer(scope), calls: calls, duration: duration, active: active}, nil
}

func (o *observer) start(ctx context.Context, q Request, resumed bool) (context.Context, trace.Span) {
	return o.tracer.Start(ctx, "execute_tool "+spanTool(q.Tool), trace.WithAttributes(
		semconv.GenAIOperationNameKey.String("execute_tool"),
		semconv.GenAIToolNameKey.String(spanTool(q.Tool)),
		semconv.GenAIToolCallIDKey.String(q.Ref.CallID),
		semconv.GenAIToolTypeKey.String("function"),
		keyTenant.String(q.Ref.Tenant),
		keySession.String(q.Ref.Session),
		keyEpoch.Int64(q.Ref.Epoch),
		keyResumed.Bool(resumed),
	))
}

// spanTool replaces a name that a model made up, so that spans do not contain
// arbitrary text.
func spanTool(name string) string {
	if len(name) > tool.MaxNameBytes {
		return "_other"
	}
	return name
}

// decided adds the decision to a call's span.
func decided(span trace.Span, d permission.Decision) {
	span.AddEvent("decide", trace.WithAttributes(keyDecision.String(d.Kind.String()), keyRule.String(d.Rule)))
}

// label returns the label of a tool in metrics. Labels are a closed set: models make up
// names, and servers have any.
func (o *observer) label(name string) string {
	if mcp.Is(name) {
		return "_mcp"
	}
	if _, known := o.tools.Get(name); !known {
		return "_other"
	}
	return name
}

// running counts calls that run.
func (o *observer) running(ctx context.Context, name string, n int64) {
	o.active.Add(ctx, n, metric.WithAttributes(semconv.GenAIToolNameKey.String(o.label(name))))
}

// ended records the metrics of a call and notes its outcome on its span, which
// may be nil. It does not end the span.
func (o *observer) ended(ctx context.Context, span trace.Span, name string, r *tool.Result) {
	word := outcome(r)
	set := metric.WithAttributes(semconv.GenAIToolNameKey.String(o.label(name)), keyOutcome.String(word))
	o.calls.Add(ctx, 1, set)
	o.duration.Record(ctx, float64(r.GetDurationMs())/1000, set)
	if span == nil {
		return
	}
	span.SetAttributes(keyOutcome.String(word))
	if word != "ok" {
		span.SetAttributes(semconv.ErrorTypeKey.String(word))
		span.SetStatus(codes.Error, word)
	}
}

// endSpan ends a call's span. It leaves out the text of an error, which may
// quote the call.
func endSpan(span trace.Span, err error) {
	if err != nil && !errors.Is(err, store.ErrConflict) {
		span.SetAttributes(semconv.ErrorTypeKey.String("call_not_made"))
		span.SetStatus(codes.Error, "call not made")
	}
	span.End()
}
