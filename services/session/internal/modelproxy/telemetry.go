package modelproxy

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// startSpan begins the span of a call, with the names of OpenTelemetry's conventions for generative AI. The call's
// context has it. end ends the span and counts the call.
func (c *call) startSpan() (end func(f *modelapi.Failure, took time.Duration)) {
	attrs := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", c.entry.Provider),
		attribute.String("gen_ai.request.model", c.entry.Name), attribute.String("fairlead.tenant", c.payer.Tenant),
		attribute.String("http.route", c.route.Pattern), attribute.Bool("fairlead.proxy.translated", !c.passesOn()),
	}
	if c.payer.Session != "" {
		attrs = append(attrs, attribute.String("gen_ai.conversation.id", c.payer.Session))
	}
	ctx, span := c.Tracer.Start(c.r.Context(), "chat "+c.entry.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	c.r = c.r.WithContext(ctx)
	return func(f *modelapi.Failure, took time.Duration) {
		defer span.End()
		u := c.usage
		if u != nil {
			span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", state.PromptTokens(u)), attribute.Int64("gen_ai.usage.output_tokens", u.GetOutputTokens()))
		}
		if c.answerID != "" {
			span.SetAttributes(attribute.String("gen_ai.response.id", c.answerID))
		}
		if c.finish != "" {
			span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{c.finish}))
		}
		kind := c.failed
		switch {
		case f != nil:
			kind = strconv.Itoa(f.Status)
		case kind == "" && gone(c.r.Context()): //nolint:contextcheck // it is the request's own
			kind = "cancelled"
		}
		if kind != "" {
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		c.Metrics.ModelCalled(ctx, c.entry.Provider, u, kind != "", took)
	}
}
