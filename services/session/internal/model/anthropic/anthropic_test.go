package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// config is everything about a model.
type config struct {
	Access
	Limits
}

func newModel(s *modeltest.Server, change ...func(*config)) *Model {
	c := config{
		Access: Access{Provider: "anthropic", BaseURL: s.URL, Key: modeltest.Key, Idle: 10 * time.Second},
		Limits: Limits{MaxOutputTokens: 8000},
	}
	for _, f := range change {
		f(&c)
	}
	return Connect(c.Access).Model(c.Limits)
}

func ask(s string) model.Request {
	return model.Request{Model: "claude", System: "be brief", Messages: []*sessionv1.Message{streamtest.User(streamtest.Text(s))}}
}

func TestStream(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{
		Thinking: "let me think about it", Redacted: "c2VjcmV0", Text: []string{"I will ", "look."},
		Calls: []modeltest.Call{{ID: "toolu_1", Name: "Bash", Input: `{"command":"ls -la /"}`}, {ID: "toolu_2", Name: "LS"}},
		Usage: modeltest.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40, Thinking: 5},
	}))
	resp, text, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if text != "I will look." || resp.StopReason != "tool_use" || resp.ID != "msg_1" {
		t.Errorf("got %q, %q, %q", text, resp.StopReason, resp.ID)
	}
	usage := &sessionv1.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 30, CacheWriteTokens: 40, ThinkingTokens: 5}
	if diff := cmp.Diff(usage, resp.Usage, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	calls := []*sessionv1.ToolUse{resp.Blocks[3].GetToolUse(), resp.Blocks[4].GetToolUse()}
	want := []*sessionv1.ToolUse{
		{ProviderCallId: "toolu_1", Tool: "Bash", ArgumentsJson: `{"command":"ls -la /"}`},
		{ProviderCallId: "toolu_2", Tool: "LS", ArgumentsJson: `{}`},
	}
	if diff := cmp.Diff(want, calls, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if d := resp.Blocks[0].GetProviderData(); d.GetProvider() != "anthropic" || !strings.Contains(string(d.GetData()), `"signature":"sig-`) {
		t.Errorf("thinking has the provider data %v", d)
	}
	if d := resp.Blocks[1].GetProviderData(); !strings.Contains(string(d.GetData()), `c2VjcmV0`) {
		t.Errorf("redacted thinking has the provider data %v", d)
	}
}

func TestThinkingGoesBackUnchanged(t *testing.T) {
	for name, to := range map[string]struct{ provider, model string }{
		"to the same model": {"anthropic", "claude"}, "not to another provider": {"other", "claude"}, "not to another model": {"anthropic", "claude-2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Anthropic(t, modeltest.Sequence(
				modeltest.Step{Thinking: "hm", Redacted: "cmVk", Text: []string{"ok"}, Calls: []modeltest.Call{{ID: "toolu_1", Name: "LS", Input: "{}"}}},
				modeltest.Step{Text: []string{"done"}},
			))
			r := ask("hi")
			r.ThinkingTokens = 2000
			resp, _, err := streamtest.Play(t.Context(), t, newModel(s), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range resp.Blocks {
				if u := b.GetToolUse(); u != nil {
					u.CallId = "turn.1.1"
				}
			}
			r.Messages = append(r.Messages, streamtest.Assistant(resp.Blocks...), streamtest.User(streamtest.Result("turn.1.1", ok, "a file")))
			r.Model = to.model
			if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *config) { c.Provider = to.provider }), r); err != nil {
				t.Fatal(err)
			}
			all := s.Requests()
			sent := all[len(all)-1]
			var kinds []string
			for _, b := range sent.Messages()[1]["content"].([]any) {
				kinds = append(kinds, b.(map[string]any)["type"].(string))
			}
			want, thinking := []string{"thinking", "redacted_thinking", "text", "tool_use"}, true
			if to.provider == "other" || to.model != "claude" {
				want, thinking = want[2:], false
			}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Error(diff)
			}
			if _, on := sent.Body["thinking"]; on != thinking {
				t.Errorf("the request has thinking: %v", on)
			}
			if refused := s.Refused(); refused != nil {
				t.Error(refused)
			}
		})
	}
}

// history has all that a conversation may have.
func history() []*sessionv1.Message {
	st := streamtest.User
	return []*sessionv1.Message{
		streamtest.Assistant(streamtest.Text("Welcome aboard.")),
		st(streamtest.Text("one"), streamtest.Text(" ")),
		st(streamtest.Text("two"), streamtest.Image(), streamtest.Document("application/pdf", "%PDF"), streamtest.Document("text/plain", "plain"), streamtest.Document("application/zip", "PK")),
		streamtest.Assistant(streamtest.Text(""), streamtest.Use("t.1.1", "toolu_a", "Bash", `{"command":`), streamtest.Use("t.1.2", "bad id!", "LS", ""), streamtest.Use("t.1.3", "toolu_a", "LS", `[1]`)),
		st(streamtest.Result("t.1.1", sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "not JSON")),
		st(streamtest.Text("by the way"), streamtest.Result("t.1.2", sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED, ""), streamtest.Result("t.1.3", ok, "image")),
		streamtest.Assistant(streamtest.Text("half an ans")),
		streamtest.Assistant(streamtest.Use("t.2.1", "", "LS", "{}")),
		st(streamtest.Result("t.2.1", sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, " \n")),
	}
}

func TestRequestKeepsTheRules(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	r := model.Request{
		Model: "claude", System: "be brief", Messages: history(), MaxOutputTokens: 100_000,
		Tools: []model.Tool{{Name: "Bash", Description: "runs", InputSchema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"additionalProperties":false}`)}, {Name: "LS"}},
	}
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s), r); err != nil {
		t.Fatal(err, s.Refused())
	}
	sent := s.Requests()[0]
	cache := map[string]any{"type": "ephemeral"}
	result := func(id, text string) any {
		return map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": true, "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	want := map[string]any{
		"model": "claude", "max_tokens": 8000.0, "stream": true,
		"system": []any{map[string]any{"type": "text", "text": "be brief\n\nYou have already greeted the user with these words: Welcome aboard.", "cache_control": cache}},
		"tools": []any{
			map[string]any{"name": "Bash", "description": "runs", "input_schema": map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "additionalProperties": false}},
			map[string]any{"name": "LS", "input_schema": map[string]any{"type": "object"}, "cache_control": cache},
		},
		"messages": []any{
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": "one"}, map[string]any{"type": "text", "text": "two"},
				map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "AQID"}},
				map[string]any{"type": "document", "title": "doc", "source": map[string]any{"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
				map[string]any{"type": "document", "title": "doc", "source": map[string]any{"type": "text", "media_type": "text/plain", "data": "plain"}},
				map[string]any{"type": "text", "text": "[a document that cannot be shown here: doc, application/zip, 2 bytes]"},
			}},
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "tool_use", "id": "toolu_a", "name": "Bash", "input": map[string]any{"_invalid_arguments": `{"command":`}},
				map[string]any{"type": "tool_use", "id": "call_t_1_2", "name": "LS", "input": map[string]any{}},
				map[string]any{"type": "tool_use", "id": "call_t_1_3", "name": "LS", "input": map[string]any{"_invalid_arguments": "[1]"}},
			}},
			map[string]any{"role": "user", "content": []any{
				result("toolu_a", "not JSON"),
				result("call_t_1_2", "The call was not made: a person refused it."),
				map[string]any{"type": "tool_result", "tool_use_id": "call_t_1_3", "content": []any{map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "AQID"}}}},
				map[string]any{"type": "text", "text": "by the way"},
			}},
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "text", "text": "half an ans"},
				map[string]any{"type": "tool_use", "id": "call_t_2_1", "name": "LS", "input": map[string]any{}},
			}},
			map[string]any{"role": "user", "content": []any{
				map[string]any{
					"type": "tool_result", "tool_use_id": "call_t_2_1", "is_error": true, "cache_control": cache,
					"content": []any{map[string]any{"type": "text", "text": "It is not known how the call ended: it may have taken effect. Check before repeating it."}},
				},
			}},
		},
	}
	if diff := cmp.Diff(want, sent.Body); diff != "" {
		t.Error(diff)
	}
}

func TestThinkingIsAskedForInTheModelsWay(t *testing.T) {
	tests := []struct {
		name     string
		adaptive bool
		thinking int64
		output   int64
		want     any
	}{
		{"a budget", false, 4000, 0, map[string]any{"type": "enabled", "budget_tokens": 4000.0}},
		{"a budget less than the answer", false, 4000, 2000, map[string]any{"type": "enabled", "budget_tokens": 1999.0}},
		{"a budget that is not too small", false, 10, 0, map[string]any{"type": "enabled", "budget_tokens": 1024.0}},
		{"no budget in a short answer", false, 4000, 1000, nil},
		{"no thinking", false, 0, 0, nil},
		{"adaptive", true, 4000, 0, map[string]any{"type": "adaptive", "display": "summarized"}},
		{"no word about it to an adaptive model", true, 0, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
			r := ask("hi")
			r.ThinkingTokens, r.MaxOutputTokens = tt.thinking, tt.output
			if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *config) { c.Adaptive = tt.adaptive }), r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.Requests()[0].Body["thinking"]); diff != "" {
				t.Error(diff)
			}
		})
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
	date := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	tests := []struct {
		name string
		step modeltest.Step
		want want
	}{
		{"429 with seconds", modeltest.Step{Status: 429, ErrorType: "rate_limit_error", Header: map[string]string{"retry-after": "7"}}, want{model.Unavailable, 429, 7 * time.Second, false, ""}},
		{"429 with milliseconds", modeltest.Step{Status: 429, Header: map[string]string{"retry-after-ms": "1500", "retry-after": "7"}}, want{model.Unavailable, 429, 1500 * time.Millisecond, false, ""}},
		{"429 with a date", modeltest.Step{Status: 429, Header: map[string]string{"retry-after": date}}, want{model.Unavailable, 429, 90 * time.Second, false, ""}},
		{"429 that will not pass", modeltest.Step{Status: 429, Header: map[string]string{"x-should-retry": "false"}}, want{model.Refused, 429, 0, false, ""}},
		{"429 of a spending limit", modeltest.Step{Status: 429, ErrorType: "rate_limit_error", ErrorCode: "enforced_spend_limit_reached"}, want{model.Billing, 429, 0, false, ""}},
		{"a refusal that will pass", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", Header: map[string]string{"x-should-retry": "true"}}, want{model.Unavailable, 400, 0, false, ""}},
		{"400", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorMessage: "max_tokens: too large"}, want{model.Refused, 400, 0, false, ""}},
		{"400 of a full context", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorMessage: "prompt is too long: 210000 tokens > 200000 maximum"}, want{model.ContextFull, 400, 0, false, ""}},
		{"400 of an empty balance", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorMessage: "Your credit balance is too low"}, want{model.Billing, 400, 0, false, ""}},
		{"402", modeltest.Step{Status: 402, ErrorType: "billing_error"}, want{model.Billing, 402, 0, false, ""}},
		{"403", modeltest.Step{Status: 403, ErrorType: "permission_error"}, want{model.Authentication, 403, 0, false, ""}},
		{"404", modeltest.Step{Status: 404, ErrorType: "not_found_error"}, want{model.Refused, 404, 0, false, ""}},
		{"413", modeltest.Step{Status: 413, ErrorType: "request_too_large"}, want{model.ContextFull, 413, 0, false, ""}},
		{"529", modeltest.Step{Status: 529, ErrorType: "overloaded_error"}, want{model.Unavailable, 529, 0, false, ""}},
		{"500 without a word", modeltest.Step{Status: 500}, want{model.Unavailable, 500, 0, false, ""}},
		{"an error event", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorType: "overloaded_error", ErrorMessage: "Overloaded"}, want{model.Unavailable, 0, 0, true, "a"}},
		{"an error event that is a refusal", modeltest.Step{Text: []string{"a"}, After: -1, Break: modeltest.Fail, ErrorType: "invalid_request_error"}, want{model.Refused, 0, 0, true, ""}},
		{"a cut connection", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Cut}, want{model.Unavailable, 0, 0, true, "a"}},
		{"an end without message_stop", modeltest.Step{Text: []string{"a", "b"}, After: 2, Break: modeltest.End}, want{model.Unavailable, 0, 0, true, "ab"}},
		{"an end before the first event", modeltest.Step{After: -1, Break: modeltest.End}, want{model.Unavailable, 0, 0, true, ""}},
		{"silence", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}, want{model.Unavailable, 0, 0, true, "a"}},
		{"a web page", modeltest.Step{After: 1, Break: modeltest.HTML}, want{model.Refused, 200, 0, false, ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Anthropic(t, modeltest.Sequence(tt.step))
			_, text, err := streamtest.Play(t.Context(), t, newModel(s, func(c *config) {
				if tt.step.Break == modeltest.Silent {
					c.Idle = 100 * time.Millisecond
				}
			}), ask("my words"))
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			got := want{e.Kind, e.Status, e.RetryAfter.Round(10 * time.Second), e.Midway, text}
			if tt.want.after < 10*time.Second {
				got.after = e.RetryAfter
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if e.Message == "" || strings.Contains(err.Error(), modeltest.Key) || strings.Contains(err.Error(), "my words") {
				t.Errorf("the message is %q", err)
			}
			if len(s.Requests()) != 1 {
				t.Errorf("%d requests were made", len(s.Requests()))
			}
		})
	}
}

func TestRefusedKey(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{}))
	_, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *config) { c.Key = "sk-wrong" }), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Authentication || e.Status != 401 || strings.Contains(err.Error(), "sk-wrong") {
		t.Errorf("got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{}))
	s.Close()
	_, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Unavailable || e.Midway || !strings.Contains(e.Message, "could not be reached") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledStream(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}))
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
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}}))
	_, err := newModel(s).Stream(t.Context(), ask("hi"), func(model.Delta) error { return boom })
	if err != boom { //nolint:errorlint // the contract is the error itself
		t.Errorf("got %v", err)
	}
}

func TestStopReasons(t *testing.T) {
	for said, want := range map[string]string{
		"end_turn": "end_turn", "max_tokens": "max_tokens", "stop_sequence": "stop_sequence", "refusal": "refusal",
		"pause_turn": "end_turn", "model_context_window_exceeded": "max_tokens", "a_new_one": "end_turn",
	} {
		s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}, StopReason: said}))
		resp, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
		if err != nil || resp.StopReason != want {
			t.Errorf("%s: got %+v, %v", said, resp, err)
		}
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "another")
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi")); err != nil {
		t.Fatal(err)
	}
	h := s.Requests()[0].Header
	if h.Get("Authorization") != "" || h.Get("traceparent") != "" {
		t.Errorf("sent %v", h)
	}
}
