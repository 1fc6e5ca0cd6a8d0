// Package telemetry makes the spans of turns and counts what they do.
package telemetry

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
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
	attrEvaluation   = attribute.Key("gen_ai.evaluation.name")
	attrScore        = attribute.Key("gen_ai.evaluation.score.value")
	attrScoreLabel   = attribute.Key("gen_ai.evaluation.score.label")
	attrFeedback     = attribute.Key("fairlead.feedback")
)

// Telemetry makes spans and counts. It is shared by all workers.
type Telemetry struct {
	*Metrics
	Tracer trace.Tracer
}

// StartRun begins the span of one worker's part of a turn, a child of the request that brought
// the turn.
func (m Telemetry) StartRun(sc state.Scope) (state.Scope, trace.Span) {
	t := sc.Active
	ctx := propagation.TraceContext{}.Extract(sc.Context, propagation.MapCarrier(t.Run.Trace))
	return m.start(sc.With(ctx), "turn.run", trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attrOperation.String("invoke_agent"), attrAgent.String(state.LastSegment(sc.Proto.Agent)),
		attrConversation.String(sc.Lease.Session), attrTenant.String(sc.Lease.Tenant),
		attrTurn.String(t.ID), attrEpoch.Int64(sc.Lease.Epoch)))
}

// EndRun ends the span of a worker's part of a turn.
func (m Telemetry) EndRun(span trace.Span, t *state.Turn, err error) {
	defer span.End()
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

// evaluation is the conventions' name of the event that has the result of an evaluation.
const evaluation = "gen_ai.evaluation.result"

// Judged adds a person's judgement to the trace of a turn, and counts it. The comment is content, and stays out.
func (m Telemetry) Judged(sc state.Scope, t *state.Turn, f *sessionv1.Feedback) {
	label, score := "positive", 1.0
	if f.Value == sessionv1.FeedbackValue_FEEDBACK_VALUE_NEGATIVE {
		label, score = "negative", 0
	}
	m.feedback.Add(sc, 1, metric.WithAttributes(attribute.String("value", label)))
	ctx := propagation.TraceContext{}.Extract(sc.Context, propagation.MapCarrier(t.Run.Trace))
	_, span := m.start(sc.With(ctx), "turn.feedback", trace.WithAttributes(
		attrConversation.String(sc.Lease.Session), attrTenant.String(sc.Lease.Tenant), attrTurn.String(t.ID), attrStep.Int(int(f.Step)), attrFeedback.String(state.LastSegment(f.Name))))
	span.AddEvent(evaluation, trace.WithAttributes(attrEvaluation.String("user_feedback"), attrScoreLabel.String(label), attrScore.Float64(score)))
	span.End()
}

// StartStep begins the span of a step.
func (m Telemetry) StartStep(sc state.Scope) (state.Scope, trace.Span) {
	return m.start(sc, "turn.step", trace.WithAttributes(attrTurn.String(sc.Active.ID), attrStep.Int(int(sc.Active.Step()))))
}

// StartCall begins the span of a call.
func (m Telemetry) StartCall(sc state.Scope, u *sessionv1.ToolUse) (state.Scope, trace.Span) {
	return m.start(sc, "tool_call "+u.Tool, trace.WithAttributes(
		attrToolName.String(u.Tool), attrToolCallID.String(u.CallId), attrStep.Int(int(sc.Active.Step()))))
}

// EndCall tells a call's span how the call ended.
func EndCall(span trace.Span, r *sessionv1.ToolResult) {
	span.SetAttributes(attrOutcome.String(r.Outcome.String()))
	if r.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		span.SetAttributes(attrErrorType.String(r.Outcome.String()))
	}
}

// ModelCall makes a call of a model in a span of its own, and counts it. purpose is empty for the
// call of a step.
func (m Telemetry) ModelCall(sc state.Scope, r state.Resolved, attempt int, purpose string, call func(state.Scope) (*model.Response, error)) (*model.Response, error) {
	attrs := []attribute.KeyValue{
		attrOperation.String("chat"), attrProvider.String(r.Provider), attrModel.String(r.Name),
		attrConversation.String(sc.Lease.Session), attrAttempt.Int(attempt),
	}
	if purpose != "" {
		attrs = append(attrs, attrPurpose.String(purpose))
	}
	sc, span := m.start(sc, "chat "+r.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	defer span.End()
	begun := time.Now()
	resp, err := call(sc)
	m.modelCall(sc, r, resp, err, time.Since(begun))
	if err != nil {
		kind := "cancelled"
		var failed *model.Error
		if errors.As(err, &failed) {
			kind = errorKind(failed.Kind)
		}
		span.SetAttributes(attrErrorType.String(kind))
		span.SetStatus(codes.Error, kind)
		return resp, err
	}
	span.SetAttributes(attrResponseID.String(resp.ID), attrFinish.StringSlice([]string{resp.StopReason}),
		attrInputTokens.Int64(state.PromptTokens(resp.Usage)), attrOutputTokens.Int64(resp.Usage.GetOutputTokens()))
	return resp, nil
}

func (m Telemetry) start(sc state.Scope, name string, options ...trace.SpanStartOption) (state.Scope, trace.Span) {
	ctx, span := m.Tracer.Start(sc.Context, name, options...)
	return sc.With(ctx), span
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
