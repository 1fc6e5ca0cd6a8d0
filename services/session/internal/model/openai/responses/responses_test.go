package responses

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

func newModel(s *modeltest.Server, change ...func(*Config)) *Model {
	c := Config{Provider: "openai", BaseURL: s.URL, Key: modeltest.Key, Idle: 10 * time.Second, MaxOutputTokens: 8000}
	for _, f := range change {
		f(&c)
	}
	return New(c)
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
	tests := []struct {
		name string
		step modeltest.Step
		want []string
		stop string
	}{
		{"text", modeltest.Step{Text: []string{"a", "b"}}, []string{"text ab"}, "end_turn"},
		{"thinking, text and calls", modeltest.Step{Thinking: "hm hm hm hm", Text: []string{"a"}, Calls: calls}, append([]string{"thinking hm hm hm hm", "text a"}, both...), "tool_use"},
		{"thinking without a text", modeltest.Step{Redacted: "x", Text: []string{"a"}}, []string{"thinking ", "text a"}, "end_turn"},
		{"calls in one piece", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{WholeCalls: true}}, both, "tool_use"},
		{"pieces of calls that alternate", modeltest.Step{Calls: calls, OpenAI: modeltest.Habits{Interleave: true}}, both, "tool_use"},
		{"comments", modeltest.Step{Text: []string{"a"}, OpenAI: modeltest.Habits{Comments: true}}, []string{"text a"}, "end_turn"},
		{"a call without arguments", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "LS"}}}, []string{"call LS {} x"}, "tool_use"},
		{"arguments that are not JSON", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "LS", Input: `{"path`}, calls[1]}}, []string{`call LS {"path x`, both[1]}, "tool_use"},
		{"a cut answer", modeltest.Step{Text: []string{"a"}, StopReason: "max_tokens"}, []string{"text a"}, "max_tokens"},
		{"a cut call", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Name: "LS", Input: `{"path`}}, StopReason: "max_tokens"}, []string{`call LS {"path x`}, "max_tokens"},
		{"a filtered answer", modeltest.Step{Text: []string{"a"}, StopReason: "refusal"}, []string{"text a"}, "refusal"},
		{"a refusal", modeltest.Step{Text: []string{"no"}, OpenAI: modeltest.Habits{Refusal: true}}, []string{"text no"}, "refusal"},
		{"nothing", modeltest.Step{}, nil, "end_turn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Responses(t, modeltest.Sequence(tt.step))
			resp, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
			if err != nil {
				t.Fatal(err, s.Refused())
			}
			if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" || resp.StopReason != tt.stop {
				t.Errorf("stop %q, want %q; blocks:\n%s", resp.StopReason, tt.stop, diff)
			}
		})
	}
}

func TestTheFirstCallIsStreamedAsItComes(t *testing.T) {
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{
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

func TestUsage(t *testing.T) {
	told := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}, Usage: modeltest.Usage{Input: 10, Output: 20, CacheRead: 30, Thinking: 5}}))
	resp, _, err := streamtest.Play(t.Context(), t, newModel(told), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := &sessionv1.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 30, ThinkingTokens: 5}
	if diff := cmp.Diff(want, resp.Usage, protocmp.Transform()); diff != "" || resp.ID != "resp_1" {
		t.Errorf("id %q, usage: %s", resp.ID, diff)
	}
}

func TestTheRequestKeepsTheRules(t *testing.T) {
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	user := streamtest.User
	r := model.Request{
		Model: "gpt", System: "be brief", MaxOutputTokens: 5, ThinkingTokens: 1, Temperature: new(0.5), TopP: new(0.25),
		Tools: []model.Tool{{Name: "Bash", Description: "runs", InputSchema: json.RawMessage(`{"type":"object", "properties":{}}`)}, {Name: "LS"}},
		Messages: []*sessionv1.Message{
			streamtest.Assistant(streamtest.Text("Welcome aboard.")),
			user(streamtest.Text("one")), user(streamtest.Text("two"), streamtest.Text("\n")),
			streamtest.Assistant(streamtest.Text("I look"), streamtest.Use("t.1.1", "call_0", "Bash", `{"command":`), streamtest.Use("t.1.2", "", "LS", "")),
			user(streamtest.Text("by the way"), streamtest.Result("t.1.1", sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "not JSON"), streamtest.Result("t.1.2", ok, "image")),
			streamtest.Assistant(streamtest.Use("t.2.1", "call_0", "LS", `{"a": 1}`), streamtest.Use("t.2.2", "call_1", "LS", `{}`)),
			user(streamtest.Result("t.2.1", sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED, "no rule allows it"), streamtest.Result("t.2.2", ok, "")),
			user(streamtest.Image(), streamtest.Document("text/plain", "plain"), streamtest.Document("application/pdf", "%PDF"), streamtest.Document("application/zip", "PK")),
		},
	}
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.ReasoningEffort = "low" }), r); err != nil {
		t.Fatal(err, s.Refused())
	}
	type object = map[string]any
	text := func(s string) any { return object{"type": "input_text", "text": s} }
	call := func(id, name, args string) any {
		return object{"type": "function_call", "call_id": id, "name": name, "arguments": args}
	}
	back := func(id string, output any) any {
		return object{"type": "function_call_output", "call_id": id, "output": output}
	}
	png := object{"type": "input_image", "image_url": "data:image/png;base64,AQID"}
	said := func(parts ...any) any { return object{"type": "message", "role": "user", "content": parts} }
	want := object{
		"model": "gpt", "stream": true, "store": false, "max_output_tokens": 16.0, "temperature": 0.5, "top_p": 0.25, "include": []any{"reasoning.encrypted_content"},
		"reasoning":    object{"effort": "low", "summary": "auto"},
		"instructions": "be brief\n\nYou have already greeted the user with these words: Welcome aboard.",
		"tools": []any{
			object{"type": "function", "strict": false, "name": "Bash", "description": "runs", "parameters": object{"type": "object", "properties": object{}}},
			object{"type": "function", "strict": false, "name": "LS", "parameters": object{"type": "object"}},
		},
		"input": []any{
			said(text("one"), text("two")),
			object{"type": "message", "role": "assistant", "content": "I look"},
			call("call_0", "Bash", `{"_invalid_arguments":"{\"command\":"}`), call("call_t_1_2", "LS", "{}"),
			back("call_0", "The tool reports an error:\nnot JSON"), back("call_t_1_2", []any{png}),
			said(text("by the way")),
			call("call_t_2_1", "LS", `{"a":1}`), call("call_1", "LS", "{}"),
			back("call_t_2_1", "The call was not made: the permission profile does not allow it.\nno rule allows it"), back("call_1", "(no output)"),
			said(png, text("doc\nplain"), object{"type": "input_file", "filename": "doc.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
				text("[a document that cannot be shown here: doc, application/zip, 2 bytes]")),
		},
	}
	if diff := cmp.Diff(want, s.Requests()[0].Body); diff != "" {
		t.Error(diff)
	}
	header := s.Requests()[0].Header
	for name := range header {
		if strings.HasPrefix(strings.ToLower(name), "x-stainless") {
			t.Errorf("the request has the header %s", name)
		}
	}
	if header.Get("User-Agent") != "fairlead" || header.Get("OpenAI-Organization") != "" {
		t.Errorf("the headers are %v", header)
	}
}

func TestErrors(t *testing.T) {
	type want struct {
		kind    model.ErrorKind
		status  int
		after   time.Duration
		midway  bool
		text    string // streamed before
		request string
	}
	tests := []struct {
		name string
		step modeltest.Step
		want want
	}{
		{"429", modeltest.Step{Status: 429, ErrorType: "requests", ErrorCode: "rate_limit_exceeded", Header: map[string]string{"retry-after": "7"}}, want{model.Unavailable, 429, 7 * time.Second, false, "", "req_1"}},
		{"429 in milliseconds", modeltest.Step{Status: 429, Header: map[string]string{"retry-after-ms": "250"}}, want{model.Unavailable, 429, 250 * time.Millisecond, false, "", "req_1"}},
		{"429 of a quota", modeltest.Step{Status: 429, ErrorType: "insufficient_quota", ErrorCode: "insufficient_quota"}, want{model.Billing, 429, 0, false, "", "req_1"}},
		{"400", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorMessage: "Unsupported parameter: 'temperature'"}, want{model.Refused, 400, 0, false, "", "req_1"}},
		{"400 of a full context", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorCode: "context_length_exceeded"}, want{model.ContextFull, 400, 0, false, "", "req_1"}},
		{"404", modeltest.Step{Status: 404, ErrorCode: "model_not_found"}, want{model.Refused, 404, 0, false, "", "req_1"}},
		{"503", modeltest.Step{Status: 503, ErrorMessage: "busy"}, want{model.Unavailable, 503, 0, false, "", "req_1"}},
		{"an error event", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorCode: "server_error", ErrorMessage: "broken"}, want{model.Unavailable, 0, 0, true, "a", "req_1"}},
		{"an error event about the prompt", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Fail, ErrorCode: "invalid_prompt", ErrorMessage: "no"}, want{model.Refused, 0, 0, true, "a", "req_1"}},
		{"a cut connection", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Cut}, want{model.Unavailable, 0, 0, true, "a", "req_1"}},
		{"an end without the whole response", modeltest.Step{Text: []string{"a", "b"}, After: 2, Break: modeltest.End}, want{model.Unavailable, 0, 0, true, "ab", "req_1"}},
		{"silence", modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}, want{model.Unavailable, 0, 0, true, "a", "req_1"}},
		{"a web page", modeltest.Step{After: 1, Break: modeltest.HTML}, want{model.Refused, 200, 0, false, "", "req_1"}},
		{"a call without a name", modeltest.Step{Calls: []modeltest.Call{{ID: "x", Input: "{}"}}}, want{model.Unavailable, 0, 0, true, "", "req_1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Responses(t, modeltest.Sequence(tt.step))
			_, text, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) {
				if tt.step.Break == modeltest.Silent {
					c.Idle = 100 * time.Millisecond
				}
			}), ask("my words"))
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if got := (want{e.Kind, e.Status, e.RetryAfter, e.Midway, text, e.RequestID}); got != tt.want {
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

func TestTheKeyAndTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-of-the-environment")
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}}))
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi")); err != nil {
		t.Fatal(err)
	}
	if h := s.Requests()[0].Header; h.Get("OpenAI-Organization") != "" {
		t.Errorf("the headers are %v", h)
	}
	_, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.Key = "sk-wrong" }), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Authentication || e.Status != 401 || strings.Contains(err.Error(), "sk-wrong") {
		t.Errorf("got %v", err)
	}
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.Key = "" }), ask("hi")); !errors.As(err, &e) || e.Kind != model.Authentication {
		t.Errorf("without a key: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{}))
	s.Close()
	_, _, err := streamtest.Play(t.Context(), t, newModel(s), ask("hi"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Unavailable || e.Midway || !strings.Contains(e.Message, "could not be reached") {
		t.Errorf("got %v", err)
	}
}

func TestACancelledStream(t *testing.T) {
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"a", "b"}, After: 1, Break: modeltest.Silent}))
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

func TestAnErrorOfEmit(t *testing.T) {
	boom := errors.New("boom")
	s := modeltest.Responses(t, modeltest.Sequence(modeltest.Step{Text: []string{"a"}}))
	_, err := newModel(s).Stream(t.Context(), ask("hi"), func(model.Delta) error { return boom })
	if err != boom { //nolint:errorlint // the contract is the error itself
		t.Errorf("got %v", err)
	}
}

func TestASchemaThatIsNotJSON(t *testing.T) {
	r := ask("hi")
	r.Tools = []model.Tool{{Name: "LS", InputSchema: json.RawMessage(`{"type":`)}}
	_, err := New(Config{Provider: "p", MaxOutputTokens: 1}).Stream(t.Context(), r, func(model.Delta) error { return nil })
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Refused || !strings.Contains(e.Message, "LS") {
		t.Errorf("got %v", err)
	}
}
