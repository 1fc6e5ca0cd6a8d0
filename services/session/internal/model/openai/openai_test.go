package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { transport.CloseIdle() }))
}

const ok = sessionv1.ToolOutcome_TOOL_OUTCOME_OK

func newModel(s *modeltest.Server, change ...func(*Config)) *chat {
	c := Config{Provider: "openai", BaseURL: s.URL, Key: modeltest.Key, Idle: 10 * time.Second, MaxOutputTokens: 8000}
	for _, f := range change {
		f(&c)
	}
	return newChat(c)
}

func ask(s string) model.Request {
	return model.Request{Model: "gpt", System: "be brief", Messages: []*sessionv1.Message{streamtest.User(streamtest.Text(s))}}
}

// shape writes blocks down: kind and content.
func shape(blocks []*sessionv1.Block) []string {
	var out []string
	for _, b := range blocks {
		switch {
		case b.GetThinking() != nil:
			out = append(out, "thinking "+b.GetThinking().GetText())
		case b.GetToolUse() != nil:
			u := b.GetToolUse()
			out = append(out, strings.TrimSpace("call "+u.GetTool()+" "+u.GetArgumentsJson()+" "+u.GetProviderCallId()))
		default:
			out = append(out, "text "+b.GetContent().GetText().GetText())
		}
	}
	return out
}

func TestStream(t *testing.T) {
	calls := []modeltest.Call{{ID: "call_a", Name: "Bash", Input: `{"command":"ls -la /"}`}, {ID: "call_b", Name: "LS", Input: `{"path":"/"}`}}
	both := []string{`call Bash {"command":"ls -la /"} call_a`, `call LS {"path":"/"} call_b`}
	bare := []string{`call Bash {"command":"ls -la /"}`, `call LS {"path":"/"}`}
	tests := []struct {
		name string
		step modeltest.Step
		want []string
		stop string
	}{
		{"text", modeltest.Step{Text: []string{"a", "b"}}, []string{"text ab"}, "end_turn"},
		{"thinking, text and calls", modeltest.Step{Thinking: "hm hm hm hm", Text: []string{"a"}, Calls: calls}, append([]string{"thinking hm hm hm hm", "text a"}, both...), "tool_use"},
		{"reasoning in the other field", modeltest.Step{Thinking: "hm", Text: []string{"a"}, OpenAI: modeltest.Habits{Reasoning: "reasoning"}}, []string{"thinking hm", "text a"}, "end_turn"},
		{"calls in one piece", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{WholeCalls: true}}, both, "tool_use"},
		{"calls in one piece without index", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{WholeCalls: true, NoIndex: true}}, both, "tool_use"},
		{"calls in one piece without index and ids", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{WholeCalls: true, NoIndex: true, EmptyIDs: true}}, bare, "tool_use"},
		{"the same call twice without index and ids", modeltest.Step{Calls: []modeltest.Call{calls[1], calls[1]}, OpenAI: modeltest.Habits{WholeCalls: true, NoIndex: true, EmptyIDs: true}}, []string{bare[1], bare[1]}, "tool_use"},
		{"pieces without index", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{NoIndex: true}}, both, "tool_use"},
		{"pieces without index and with repeated names", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{NoIndex: true, RepeatName: true, EmptyIDs: true}}, bare, "tool_use"},
		{"repeated names", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{RepeatName: true}}, both, "tool_use"},
		{"empty ids", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{EmptyIDs: true}}, bare, "tool_use"},
		{"pieces of calls that alternate", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{Interleave: true}}, both, "tool_use"},
		{"a wrong finish reason", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{WrongFinish: true}}, both, "tool_use"},
		{"no [DONE]", modeltest.Step{Text: []string{"a"}, OpenAI: modeltest.Habits{NoDone: true}}, []string{"text a"}, "end_turn"},
		{"comments", modeltest.Step{Text: []string{"a"}, OpenAI: modeltest.Habits{Comments: true}}, []string{"text a"}, "end_turn"},
		{"a call without arguments", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "LS"}}}, []string{"call LS {} x"}, "tool_use"},
		{"arguments that are not JSON", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "LS", Input: `{"path`}, calls[1]}}, []string{`call LS {"path x`, both[1]}, "tool_use"},
		{"a cut answer", modeltest.Step{Text: []string{"a"}, StopReason: "max_tokens"}, []string{"text a"}, "max_tokens"},
		{"a filtered answer", modeltest.Step{Text: []string{"a"}, StopReason: "refusal"}, []string{"text a"}, "refusal"},
		{"a refusal", modeltest.Step{Text: []string{"no"}, OpenAI: modeltest.Habits{Refusal: true}}, []string{"text no"}, "refusal"},
		{"nothing", modeltest.Step{}, nil, "end_turn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.OpenAI(t, modeltest.Sequence(tt.step))
			resp, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" || resp.StopReason != tt.stop {
				t.Errorf("stop %q, want %q; blocks:\n%s", resp.StopReason, tt.stop, diff)
			}
		})
	}
}

func TestFirstCallIsStreamedAsItComes(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{
		Calls: []modeltest.Call{{ID: "x", Name: "LS", Input: `{"path":"/a/long/path/somewhere"}`}}, After: 3, Break: modeltest.Silent,
	}))
	came := errors.New("a piece came")
	_, err := newModel(s).Stream(t.Context(), ask("hi"), func(d model.Delta) error {
		if d.Kind == model.ToolUseDelta {
			return came
		}
		return nil
	})
	if !errors.Is(err, came) {
		t.Errorf("got %v before the call was complete", err)
	}
}

func TestTheLastUsageCounts(t *testing.T) {
	body := `data: {"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":900,"completion_tokens":500,"total_tokens":1400}}` + "\n\n" +
		`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":3}}}` + "\n\ndata: [DONE]\n\n"
	resp, err := play(t, streamtest.Reply{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sessionv1.Usage{InputTokens: 4, CacheReadTokens: 3, OutputTokens: 9}, resp.Usage, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestUsage(t *testing.T) {
	told := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}, Usage: modeltest.Usage{Input: 10, Output: 20, CacheRead: 30, Thinking: 5}}))
	resp, _, err := streamtest.Play(t.Context(), t, newModel(told), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := &sessionv1.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 30, ThinkingTokens: 5}
	if diff := cmp.Diff(want, resp.Usage, protocmp.Transform()); diff != "" || resp.ID != "chatcmpl-1" {
		t.Errorf("id %q, usage: %s", resp.ID, diff)
	}
	silent := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{strings.Repeat("a", 400)}}))
	resp, _, err = streamtest.Play(t.Context(), t, newModel(silent), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Usage.GetOutputTokens() != 100 || resp.Usage.GetInputTokens() == 0 {
		t.Errorf("the estimate is %v", resp.Usage)
	}
}

func TestRequestKeepsTheRules(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	thought := &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: "hm"}}, ProviderData: &sessionv1.ProviderData{Provider: "anthropic", Data: []byte("{}")}}
	user := streamtest.User
	r := model.Request{
		Model: "gpt", System: "be brief", MaxOutputTokens: 500,
		Tools: []model.Tool{{Name: "Bash", Description: "runs", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}, {Name: "LS"}},
		Messages: []*sessionv1.Message{
			streamtest.Assistant(streamtest.Text("Welcome aboard.")),
			user(streamtest.Text("one")), user(streamtest.Text("two"), streamtest.Text("\n")),
			streamtest.Assistant(thought, streamtest.Text("I look"), streamtest.Use("t.1.1", "call_0", "Bash", `{"command":`), streamtest.Use("t.1.2", "", "LS", "")),
			user(streamtest.Text("by the way"), streamtest.Result("t.1.1", sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "not JSON"), streamtest.Result("t.1.2", ok, "image")),
			streamtest.Assistant(streamtest.Use("t.2.1", "call_0", "LS", `{"a": 1}`), streamtest.Use("t.2.2", "call_1", "LS", `{}`)),
			user(streamtest.Result("t.2.1", sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED, "no rule allows it"), streamtest.Result("t.2.2", ok, "")),
			user(streamtest.Image(), streamtest.Document("text/plain", "plain"), streamtest.Document("application/pdf", "%PDF")),
		},
	}
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.ReasoningEffort = "none" }), r); err != nil {
		t.Fatal(err, s.Refused())
	}
	call := func(id, name, args string) any {
		return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args}}
	}
	png := map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,AQID"}}
	text := func(s string) any { return map[string]any{"type": "text", "text": s} }
	want := map[string]any{
		"model": "gpt", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_completion_tokens": 500.0, "reasoning_effort": "none",
		"tools": []any{
			map[string]any{"type": "function", "function": map[string]any{"name": "Bash", "description": "runs", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}},
			map[string]any{"type": "function", "function": map[string]any{"name": "LS", "parameters": map[string]any{"type": "object"}}},
		},
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief\n\nYou have already greeted the user with these words: Welcome aboard."},
			map[string]any{"role": "user", "content": "one\n\ntwo"},
			map[string]any{"role": "assistant", "content": "I look", "tool_calls": []any{call("call_0", "Bash", `{"_invalid_arguments":"{\"command\":"}`), call("call_t_1_2", "LS", "{}")}},
			map[string]any{"role": "tool", "tool_call_id": "call_0", "content": "The tool reports an error:\nnot JSON"},
			map[string]any{"role": "tool", "tool_call_id": "call_t_1_2", "content": "[an image, shown in the next message]"},
			map[string]any{"role": "user", "content": []any{png, text("by the way")}},
			map[string]any{"role": "assistant", "tool_calls": []any{call("call_t_2_1", "LS", `{"a":1}`), call("call_1", "LS", "{}")}},
			map[string]any{"role": "tool", "tool_call_id": "call_t_2_1", "content": "The call was not made: the permission profile does not allow it.\nno rule allows it"},
			map[string]any{"role": "tool", "tool_call_id": "call_1", "content": "(no output)"},
			map[string]any{"role": "user", "content": []any{png, text("doc\nplain"), text("[a document that cannot be shown here: doc, application/pdf, 4 bytes]")}},
		},
	}
	if diff := cmp.Diff(want, s.Requests()[0].Body); diff != "" {
		t.Error(diff)
	}
}

func TestOlderServersGetMaxTokens(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	m := newModel(s, func(c *Config) { c.LegacyMaxTokens = true })
	if _, _, err := streamtest.Play(t.Context(), t, m, ask("hi")); err != nil {
		t.Fatal(err)
	}
	body := s.Requests()[0].Body
	if _, has := body["max_completion_tokens"]; has || body["max_tokens"] != 8000.0 {
		t.Errorf("sent %v", body)
	}
}

func TestErrors(t *testing.T) {
	type want struct {
		kind   model.ErrorKind
		status int
		after  time.Duration
		midway bool
		text   string // streamed before
	}
	tests := []struct {
		name string
		step modeltest.Step
		want want
	}{
		{"429", modeltest.Step{Status: 429, ErrorType: "requests", ErrorCode: "rate_limit_exceeded", Header: map[string]string{"retry-after": "7"}}, want{model.Unavailable, 429, 7 * time.Second, false, ""}},
		{"429 of a quota", modeltest.Step{Status: 429, ErrorType: "insufficient_quota", ErrorCode: "insufficient_quota"}, want{model.Billing, 429, 0, false, ""}},
		{"400", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorMessage: "unknown parameter"}, want{model.Refused, 400, 0, false, ""}},
		{"400 of a full context", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorCode: "context_length_exceeded"}, want{model.ContextFull, 400, 0, false, ""}},
		{"400 of a full context in words", modeltest.Step{Status: 400, ErrorMessage: "This model's maximum context length is 8192 tokens"}, want{model.ContextFull, 400, 0, false, ""}},
		{"403", modeltest.Step{Status: 403}, want{model.Authentication, 403, 0, false, ""}},
		{"404", modeltest.Step{Status: 404, ErrorCode: "model_not_found"}, want{model.Refused, 404, 0, false, ""}},
		{"503", modeltest.Step{Status: 503, ErrorMessage: "busy"}, want{model.Unavailable, 503, 0, false, ""}},
		{"an error in the stream", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorType: "server_error", ErrorMessage: "broken"}, want{model.Unavailable, 0, 0, true, "a"}},
		{"an error in the stream after comments", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorType: "invalid_request_error", ErrorMessage: "no", OpenAI: modeltest.Habits{Comments: true}}, want{model.Refused, 0, 0, true, "a"}},
		{"a cut connection", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Cut}, want{model.Unavailable, 0, 0, true, "a"}},
		{"an end without a finish reason", modeltest.Step{Text: []string{"a", "b"}, After: 2, Break: modeltest.End}, want{model.Unavailable, 0, 0, true, "ab"}},
		{"silence", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}, want{model.Unavailable, 0, 0, true, "a"}},
		{"a web page", modeltest.Step{After: 1, Break: modeltest.HTML}, want{model.Refused, 200, 0, false, ""}},
		{"a call without a name", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Input: "{}"}}}, want{model.Unavailable, 0, 0, true, ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.OpenAI(t, modeltest.Sequence(tt.step))
			_, text, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) {
				if tt.step.Break == modeltest.Silent {
					c.Idle = 100 * time.Millisecond
				}
			}), ask("my words"))
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if got := (want{e.Kind, e.Status, e.RetryAfter, e.Midway, text}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if e.Message == "" || strings.Contains(err.Error(), modeltest.Key) || strings.Contains(err.Error(), "my words") {
				t.Errorf("the message is %q", err)
			}
		})
	}
}

func TestRefusedKey(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{}))
	_, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.Key = "sk-wrong" }), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Authentication || e.Status != 401 || strings.Contains(err.Error(), "sk-wrong") {
		t.Errorf("got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{}))
	s.Close()
	_, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Unavailable || e.Midway || !strings.Contains(e.Message, "could not be reached") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledStream(t *testing.T) {
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := newModel(s).Stream(ctx, ask("hi"), func(d model.Delta) error {
		if d.Kind == model.TextDelta {
			cancel()
		}
		return nil
	})
	if err != context.Canceled { //nolint:errorlint // the contract is the context's own error
		t.Errorf("got %v", err)
	}
}

func TestErrorOfEmit(t *testing.T) {
	boom := errors.New("boom")
	s := modeltest.OpenAI(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}}))
	_, err := newModel(s).Stream(t.Context(), ask("hi"), func(model.Delta) error { return boom })
	if err != boom { //nolint:errorlint // the contract is the error itself
		t.Errorf("got %v", err)
	}
}
