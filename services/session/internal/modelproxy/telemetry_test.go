package modelproxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// Each call of a model is a span with OpenTelemetry's names, its use and its end, and with nothing that was said.
func TestEachCallIsASpan(t *testing.T) {
	said := modeltest.Step{
		Thinking: "SECRET-THOUGHT", Text: []string{"SECRET-ANSWER"}, Calls: []modeltest.Call{{ID: "toolu_1", Name: "look", Input: `{"at":"SECRET-INPUT"}`}},
		Usage: modeltest.Usage{Input: 10, Output: 5, CacheRead: 3},
	}
	failing := modeltest.Step{Status: 529, ErrorType: "overloaded_error", ErrorMessage: "SECRET-ERROR"}
	cut := modeltest.Step{Text: []string{"SECRET-ANSWER", "x"}, After: 1, Break: modeltest.Cut}
	ended := map[string]any{"gen_ai.usage.input_tokens": int64(13), "gen_ai.usage.output_tokens": int64(5)}
	for _, c := range []struct {
		name, path, form, model string
		step                    modeltest.Step
		want                    []map[string]any // one for each span
	}{
		{"passed on, Messages", "/anthropic/v1/messages", messagesBody, "claude-sonnet-5-5", said, []map[string]any{{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "anthropic:claude-sonnet-5-5", "fairlead.tenant": "acme",
			"fairlead.proxy.translated": false, "gen_ai.response.finish_reasons": []string{"tool_use"}, "gen_ai.response.id": "msg_", "error.type": nil,
		}}},
		{"passed on, Chat Completions", "/openai/v1/chat/completions", chatBody, "gpt-5.5", said, []map[string]any{{
			"gen_ai.provider.name": "openai", "gen_ai.response.finish_reasons": []string{"tool_calls"}, "gen_ai.response.id": "chatcmpl-", "fairlead.proxy.translated": false,
		}}},
		{"passed on, Responses", "/openai/v1/responses", respBody, "resp:gpt-5.5", said, []map[string]any{{
			"gen_ai.request.model": "resp:gpt-5.5", "gen_ai.response.finish_reasons": []string{"completed"}, "gen_ai.response.id": "resp_", "fairlead.proxy.translated": false,
		}}},
		{"translated", "/openai/v1/responses", respBody, "claude-sonnet-5-5", said, []map[string]any{{
			"gen_ai.provider.name": "anthropic", "fairlead.proxy.translated": true, "gen_ai.response.finish_reasons": []string{"tool_use"}, "gen_ai.response.id": "msg_",
		}}},
		{"refused, then another model", "/v1/messages", messagesBody, "claude-opus-5-5", failing, []map[string]any{
			{"gen_ai.request.model": "anthropic:claude-opus-5-5", "error.type": "529", "gen_ai.usage.input_tokens": nil},
			{"gen_ai.request.model": "anthropic:claude-haiku-5-5", "error.type": "529", "gen_ai.usage.input_tokens": nil},
		}},
		{"broken, passed on", "/v1/messages", messagesBody, "claude-sonnet-5-5", cut, []map[string]any{{"error.type": "broken", "gen_ai.usage.output_tokens": nil}}},
		{"broken, translated", "/openai/v1/responses", respBody, "claude-sonnet-5-5", cut, []map[string]any{{"error.type": "broken", "gen_ai.usage.output_tokens": nil}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			w := newWorld(t, setting{
				script: modeltest.Sequence(c.step), tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer(""),
				models: map[string]catalog.Limits{"anthropic:claude-opus-5-5": {Fallbacks: []string{"anthropic:claude-haiku-5-5"}}},
			})
			form := strings.Replace(strings.Replace(c.form, "hi", "SECRET-PROMPT", 1), `"model"`, `"user":"SECRET-USER","model"`, 1)
			w.post(c.path, body(form, c.model), "X-Api-Key", "SECRET-KEY", "Authorization", "Bearer SECRET-KEY")
			w.ended()
			all := spans.GetSpans()
			if len(all) != len(c.want) {
				t.Fatalf("%d spans, want %d", len(all), len(c.want))
			}
			for i, want := range c.want {
				got := all[i]
				attrs := map[string]any{}
				for _, a := range got.Attributes {
					attrs[string(a.Key)] = a.Value.AsInterface()
				}
				status := codes.Error
				if want["error.type"] == nil {
					status = codes.Unset
					for name, v := range ended {
						want[name] = v
					}
				}
				for name, v := range want {
					if prefix, ok := v.(string); ok && strings.HasPrefix(fmt.Sprint(attrs[name]), prefix) {
						continue
					}
					if d := cmp.Diff(v, attrs[name]); d != "" {
						t.Errorf("%s: %s", name, d)
					}
				}
				if got.Name != fmt.Sprintf("chat %s", attrs["gen_ai.request.model"]) || got.SpanKind != trace.SpanKindClient || got.Status.Code != status || got.Parent.IsValid() {
					t.Errorf("the span %s has kind %v, status %v, parent %v", got.Name, got.SpanKind, got.Status, got.Parent)
				}
				if text := fmt.Sprintf("%+v", got); strings.Contains(text, "SECRET") || strings.Contains(text, modeltest.Key) {
					t.Errorf("the span tells too much: %s", text)
				}
			}
		})
	}
}

// What is refused before a model is asked is no call of a model.
func TestABadNameIsNoSpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	w := newWorld(t, setting{script: answers(), tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("")})
	if a := w.post("/v1/messages", body(messagesBody, "none:m")); a.code != http.StatusNotFound || len(spans.GetSpans()) > 0 {
		t.Errorf("%d %v", a.code, spans.GetSpans())
	}
}
