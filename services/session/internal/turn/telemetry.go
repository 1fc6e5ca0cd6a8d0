package turn

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Attribute names: OpenTelemetry's semantic conventions for generative AI where
// they define one, `fairlead.` otherwise.
const (
	attrOperation    = attribute.Key("gen_ai.operation.name")
	attrProvider     = attribute.Key("gen_ai.provider.name")
	attrModel        = attribute.Key("gen_ai.request.model")
	attrResponseID   = attribute.Key("gen_ai.response.id")
	attrFinish       = attribute.Key("gen_ai.response.finish_reasons")
	attrInputTokens  = attribute.Key("gen_ai.usage.input_tokens")
	attrOutputTokens = attribute.Key("gen_ai.usage.output_tokens")
	attrConversation = attribute.Key("gen_ai.conversation.id")
	attrAgent        = attribute.Key("gen_ai.agent.name")
	attrToolName     = attribute.Key("gen_ai.tool.name")
	attrToolCallID   = attribute.Key("gen_ai.tool.call.id")
	attrErrorType    = attribute.Key("error.type")
	attrTenant       = attribute.Key("fairlead.tenant")
	attrTurn         = attribute.Key("fairlead.turn")
	attrStep         = attribute.Key("fairlead.step")
	attrAttempt      = attribute.Key("fairlead.attempt")
	attrEpoch        = attribute.Key("fairlead.epoch")
	attrState        = attribute.Key("fairlead.turn.state")
	attrPurpose      = attribute.Key("fairlead.purpose")
	attrOutcome      = attribute.Key("fairlead.tool.outcome")
)

// startRunSpan begins the span of one worker's part of a turn, a child of the
// request that brought the turn.
func (w *Worker) startRunSpan(ctx context.Context) (context.Context, trace.Span) {
	t := w.Active
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(t.Run.Trace))
	return w.deps.Tracer.Start(ctx, "turn.run", trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attrOperation.String("invoke_agent"), attrAgent.String(state.LastSegment(w.Proto.Agent)),
		attrConversation.String(w.Lease.Session), attrTenant.String(w.Lease.Tenant),
		attrTurn.String(t.ID), attrEpoch.Int64(w.Lease.Epoch)))
}

func (w *Worker) endRunSpan(span trace.Span, t *state.Turn, err error) {
	span.SetAttributes(attrState.String(t.Proto.State.String()))
	u := t.Proto.GetUsage()
	span.SetAttributes(attrInputTokens.Int64(state.PromptTokens(u)), attrOutputTokens.Int64(u.GetOutputTokens()))
	switch {
	case err != nil:
		span.SetStatus(codes.Error, "the worker stopped")
	case t.Proto.State == sessionv1.TurnState_TURN_STATE_FAILED:
		span.SetAttributes(attrErrorType.String(t.Proto.Error.GetReason()))
		span.SetStatus(codes.Error, t.Proto.Error.GetReason())
	}
}

func (w *Worker) startStepSpan(ctx context.Context) (context.Context, trace.Span) {
	return w.deps.Tracer.Start(ctx, "turn.step", trace.WithAttributes(attrTurn.String(w.Active.ID), attrStep.Int(int(w.Active.Step()))))
}

func (w *Worker) startModelSpan(ctx context.Context, r state.Resolved) (context.Context, trace.Span) {
	return w.deps.Tracer.Start(ctx, "chat "+r.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attrOperation.String("chat"), attrProvider.String(r.Provider), attrModel.String(r.Name),
		attrConversation.String(w.Lease.Session), attrAttempt.Int(w.Active.Run.Attempt)))
}

func (w *Worker) startSummarySpan(ctx context.Context, r state.Resolved, attempt int) (context.Context, trace.Span) {
	return w.deps.Tracer.Start(ctx, "chat "+r.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attrOperation.String("chat"), attrProvider.String(r.Provider), attrModel.String(r.Name),
		attrConversation.String(w.Lease.Session), attrAttempt.Int(attempt), attrPurpose.String("compaction")))
}

func (w *Worker) endModelSpan(ctx context.Context, span trace.Span, r state.Resolved, resp *model.Response, err error, took time.Duration) {
	w.deps.Metrics.modelCall(ctx, r, resp, err, took)
	if err != nil {
		kind := "cancelled"
		var failed *model.Error
		if errors.As(err, &failed) {
			kind = errorKind(failed.Kind)
		}
		span.SetAttributes(attrErrorType.String(kind))
		span.SetStatus(codes.Error, kind)
		return
	}
	span.SetAttributes(attrResponseID.String(resp.ID), attrFinish.StringSlice([]string{resp.StopReason}),
		attrInputTokens.Int64(state.PromptTokens(resp.Usage)), attrOutputTokens.Int64(resp.Usage.GetOutputTokens()))
}

func (w *Worker) startCallSpan(ctx context.Context, u *sessionv1.ToolUse) (context.Context, trace.Span) {
	return w.deps.Tracer.Start(ctx, "tool_call "+u.Tool, trace.WithAttributes(
		attrToolName.String(u.Tool), attrToolCallID.String(u.CallId), attrStep.Int(int(w.Active.Step()))))
}

func endCallSpan(span trace.Span, r *sessionv1.ToolResult) {
	span.SetAttributes(attrOutcome.String(r.Outcome.String()))
	if r.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		span.SetAttributes(attrErrorType.String(r.Outcome.String()))
	}
}

func errorKind(k model.ErrorKind) string {
	switch k {
	case model.Unavailable:
		return "unavailable"
	case model.Authentication:
		return "authentication"
	case model.Refused:
		return "refused"
	case model.ContextFull:
		return "context_full"
	case model.Billing:
		return "billing"
	default:
		return "other"
	}
}

// Metrics counts what turns do.
type Metrics struct {
	turns    metric.Int64Counter
	retries  metric.Int64Counter
	tokens   metric.Int64Counter
	calls    metric.Float64Histogram
	duration metric.Float64Histogram
	budgets  metric.Int64Counter
}

// NewMetrics creates the instruments.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	var x Metrics
	var errs [6]error
	seconds := metric.WithExplicitBucketBoundaries(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
	x.turns, errs[0] = m.Int64Counter("fairlead.turns", metric.WithDescription("Turns that ended, by state."))
	x.retries, errs[1] = m.Int64Counter("fairlead.model.retries", metric.WithDescription("Model calls that were tried again."))
	x.tokens, errs[2] = m.Int64Counter("gen_ai.client.token.usage", metric.WithDescription("Tokens, by type and provider."), metric.WithUnit("{token}"))
	x.calls, errs[3] = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithDescription("Time of model calls."), metric.WithUnit("s"), seconds)
	x.duration, errs[4] = m.Float64Histogram("fairlead.turn.duration", metric.WithDescription("Time of turns, WAITING and QUEUED left out."), metric.WithUnit("s"), seconds)
	x.budgets, errs[5] = m.Int64Counter("fairlead.budget.denied", metric.WithDescription("Model calls that a budget denied, by whose it is, limit and whether a person is asked (soft)."))
	return &x, errors.Join(errs[:]...)
}

func (m *Metrics) finished(ctx context.Context, t *state.Turn) {
	by := metric.WithAttributes(attrState.String(t.Proto.State.String()))
	m.turns.Add(ctx, 1, by)
	m.duration.Record(ctx, t.Run.WallUsed.Seconds(), by)
}

func (m *Metrics) denied(ctx context.Context, d *store.Denial) {
	m.budgets.Add(ctx, 1, metric.WithAttributes(attribute.String("scope", string(d.Scope)), attribute.String("limit", string(d.Kind)), attribute.Bool("soft", d.Soft)))
}

func (m *Metrics) retried(ctx context.Context) { m.retries.Add(ctx, 1) }

func (m *Metrics) modelCall(ctx context.Context, r state.Resolved, resp *model.Response, err error, took time.Duration) {
	provider := attrProvider.String(r.Provider)
	result := attribute.String("result", "ok")
	if err != nil {
		result = attribute.String("result", "error")
	}
	m.calls.Record(ctx, took.Seconds(), metric.WithAttributes(provider, result))
	if resp == nil {
		return
	}
	kind := attribute.Key("gen_ai.token.type")
	m.tokens.Add(ctx, state.PromptTokens(resp.Usage), metric.WithAttributes(provider, kind.String("input")))
	m.tokens.Add(ctx, resp.Usage.GetOutputTokens(), metric.WithAttributes(provider, kind.String("output")))
}
