package modelproxy_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// A chain is our own client of one wire, the proxy, our own client of the other wire, and a fake provider. What goes
// through it must be what goes to the provider directly.

func talk() []*sessionv1.Message {
	c := &dialog.Conversation{}
	c.Add(sessionv1.Role_ROLE_USER, dialog.Text("Look at <this> & \"that\" \u00e9"))
	image, err := dialog.Media("x", "image/png", "", base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n")))
	if err != nil {
		panic(err)
	}
	c.Add(sessionv1.Role_ROLE_USER, dialog.Block(image))
	c.Add(sessionv1.Role_ROLE_ASSISTANT, dialog.Text("I look."))
	for _, call := range [][2]string{{"toolu_1", `{"at":"sky","n":12345678901234567890}`}, {"toolu_2", `{}`}} {
		if err := c.Call("x", call[0], "look", call[1]); err != nil {
			panic(err)
		}
	}
	_ = c.Result("x", "toolu_1", false, []*commonv1.Content{dialog.TextContent("(no output)")})
	_ = c.Result("x", "toolu_2", false, []*commonv1.Content{dialog.TextContent("blue")})
	c.Add(sessionv1.Role_ROLE_USER, dialog.Text("And?"))
	return c.Messages
}

// answered is an answer as its parts.
type answered struct {
	Deltas   []model.Delta
	Response *model.Response
}

func stream(t *testing.T, m model.Model, r model.Request) answered {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var a answered
	resp, err := m.Stream(ctx, r, func(d model.Delta) error {
		d.Data = nil
		a.Deltas = append(a.Deltas, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Response = resp
	return a
}

func TestAChainIsAsGoodAsTheProviderItself(t *testing.T) {
	step := modeltest.Step{
		Thinking: "Let me see & think", Text: []string{"The <sky>", " is \"blue\"\n", "\u00e9"},
		Calls: []modeltest.Call{{ID: "toolu_3", Name: "look", Input: `{"at":"the sea","deep":12345678901234567890}`}, {ID: "toolu_4", Name: "paint", Input: `{}`}},
		Usage: modeltest.Usage{Input: 20, Output: 9, CacheRead: 4, Thinking: 3},
	}
	for _, c := range []struct{ name, kind, api, path, target string }{
		{"Messages in front of Chat Completions", catalog.KindAnthropic, "", "/anthropic", "openai:gpt-5.5"},
		{"Messages in front of Responses", catalog.KindAnthropic, "", "/anthropic", "resp:gpt-5.5"},
		{"Chat Completions in front of Messages", catalog.KindOpenAI, "chat", "/openai/v1", "anthropic:claude-sonnet-4-6"},
		{"Chat Completions in front of Responses", catalog.KindOpenAI, "chat", "/openai/v1", "resp:gpt-5.5"},
		{"Responses in front of Messages", catalog.KindOpenAI, "responses", "/openai/v1", "anthropic:claude-sonnet-4-6"},
		{"Responses in front of Chat Completions", catalog.KindOpenAI, "responses", "/openai/v1", "openai:gpt-5.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setting{script: modeltest.Sequence(step)})
			far, err := catalog.New(catalog.Config{
				AnthropicKey: modeltest.Key, AnthropicBaseURL: w.anthropic.URL, OpenAIKey: modeltest.Key, OpenAIBaseURL: w.openai.URL,
				Providers: map[string]catalog.Provider{
					"far":  {Kind: c.kind, API: c.api, BaseURL: w.url + c.path, Key: "fl_k"},
					"resp": {Kind: "openai", API: "responses", BaseURL: w.responses.URL, Key: modeltest.Key},
				},
				Models: map[string]catalog.Limits{"far:" + c.target: {MaxOutputTokens: 4000}, "resp:gpt-5.5": {}},
			}, func(string) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			chained, _ := far.Resolve("far:" + c.target)
			direct, _ := far.Resolve(c.target)
			r := model.Request{
				System: "Be brief.", Messages: talk(), MaxOutputTokens: 3000,
				Tools: []model.Tool{{Name: "look", Description: "looks", InputSchema: []byte(`{"type":"object","properties":{"at":{"type":"string"}}}`)}, {Name: "paint"}},
			}
			half := 0.5
			r.Temperature, r.TopP = &half, &half
			r.Wishes = model.Wishes{
				Format:     model.Format{Schema: []byte(`{"type":"object"}`)},
				ToolChoice: model.ToolChoice{Mode: model.ToolNamed, Name: "look", Single: true},
			}
			if c.api != "responses" && !strings.HasPrefix(c.target, "resp:") {
				r.Wishes.StopSequences = []string{"END", "STOP"}
			}
			r.Model = chained.ModelName
			got := stream(t, chained.Model, r)
			r.Model = direct.ModelName
			want := stream(t, direct.Model, r)
			opts := cmp.Options{protocmp.Transform(), protocmp.IgnoreFields(&sessionv1.Block{}, "provider_data"), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ID" }, cmp.Ignore())}
			if d := cmp.Diff(want.Response, got.Response, opts); d != "" {
				t.Error("the answer differs: ", d)
			}
			if d := cmp.Diff(joined(want.Deltas), joined(got.Deltas)); d != "" {
				t.Error("the pieces differ: ", d)
			}
			requests := slices.Concat(w.anthropic.Requests(), w.openai.Requests(), w.responses.Requests())
			if d := cmp.Diff(requests[1].Body, requests[0].Body, cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.GoString(), "call_id") }, cmp.Ignore())); d != "" {
				t.Error("the provider got another request: ", d)
			}
			if refused := slices.Concat(w.anthropic.Refused(), w.openai.Refused(), w.responses.Refused()); len(refused) > 0 {
				t.Error(refused)
			}
			w.ended() // a client leaves at the last event
			if len(w.used) != 1 || w.used[0].OutputTokens != 9 {
				t.Errorf("used %v", w.used)
			}
		})
	}
}

// The thinking of a model goes through a client of another vendor and back.
func TestThinkingComesBackToItsModel(t *testing.T) {
	step := modeltest.Step{Thinking: "Hm", Calls: []modeltest.Call{{ID: "toolu_1", Name: "look", Input: `{}`}}}
	w := newWorld(t, setting{script: modeltest.Sequence(step)})
	far, err := catalog.New(catalog.Config{
		Providers: map[string]catalog.Provider{"far": {Kind: catalog.KindAnthropic, BaseURL: w.url + "/anthropic", Key: "fl_k"}},
		Models:    map[string]catalog.Limits{"far:openai:gpt-5.5": {MaxOutputTokens: 4000}},
	}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	e, _ := far.Resolve("far:openai:gpt-5.5")
	r := model.Request{Model: e.ModelName, MaxOutputTokens: 3000, Tools: []model.Tool{{Name: "look"}}, Messages: []*sessionv1.Message{
		{Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{dialog.Text("hi")}},
	}}
	first := stream(t, e.Model, r)
	for _, b := range first.Response.Blocks {
		if u := b.GetToolUse(); u != nil {
			u.CallId = u.ProviderCallId
		}
	}
	r.Messages = append(r.Messages, &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Blocks: first.Response.Blocks}, &sessionv1.Message{
		Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{
			CallId: "toolu_1", Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_OK, Content: []*commonv1.Content{dialog.TextContent("ok")},
		}}}},
	})
	stream(t, e.Model, r)
	if got := w.openai.Requests()[1].Messages()[1]["reasoning_content"]; got != "Hm" {
		t.Errorf("the model gets the thinking %q back", got)
	}
}

// joined adds up the pieces of each block: their borders may move.
func joined(all []model.Delta) (out []model.Delta) {
	for _, d := range all {
		if n := len(out); n > 0 && out[n-1].Kind == d.Kind && out[n-1].Block == d.Block {
			out[n-1].Text += d.Text
			continue
		}
		out = append(out, d)
	}
	return out
}

const (
	translatedChat      = `{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"hi"}]}`
	translatedMessages  = `{"model":"openai:gpt-5.5","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	translatedResponses = `{"model":"claude-sonnet-4-6","input":"hi"}`
)

func streamed(body string) string { return strings.Replace(body, "{", `{"stream":true,`, 1) }

func TestErrorsOfATranslatedCall(t *testing.T) {
	for _, c := range []struct {
		name string
		step modeltest.Step
		body string
		path string
		code int
		want []string
		head map[string]string
	}{
		{"a busy provider", modeltest.Step{Status: 529, ErrorType: "overloaded_error", ErrorMessage: "busy", Header: map[string]string{"retry-after": "3"}},
			translatedChat, "/openai/v1/chat/completions", 503, []string{`"type":"server_error"`, "busy"}, map[string]string{"Retry-After": "3", "X-Should-Retry": "true"}},
		{"a full context", modeltest.Step{Status: 400, ErrorType: "invalid_request_error", ErrorCode: "context_length_exceeded", ErrorMessage: "This model's maximum context length is 8 tokens"},
			translatedMessages, "/v1/messages", 400, []string{`"invalid_request_error"`, "prompt is too long"}, nil},
		{"an empty account", modeltest.Step{Status: 429, ErrorType: "insufficient_quota", ErrorCode: "insufficient_quota", ErrorMessage: "You exceeded your current quota"},
			translatedMessages, "/v1/messages", 402, []string{`"billing_error"`}, map[string]string{"X-Should-Retry": "false"}},
		{"a refused key", modeltest.Step{Status: 401, ErrorType: "authentication_error", ErrorMessage: "invalid x-api-key " + modeltest.Key},
			translatedResponses, "/openai/v1/responses", 500, []string{"refuses this server's key"}, map[string]string{"X-Should-Retry": "false"}},
		{"a break after text, Messages", modeltest.Step{Text: []string{"Hello", "x"}, After: 1, Break: modeltest.Cut},
			streamed(translatedMessages), "/v1/messages", 200, []string{"event: message_start", "Hello", "event: error\ndata: {\"type\":\"error\""}, nil},
		{"a break after text, Chat Completions", modeltest.Step{Text: []string{"Hello", "x"}, After: 1, Break: modeltest.Cut},
			streamed(translatedChat), "/openai/v1/chat/completions", 200, []string{"Hello", `data: {"error":{`}, nil},
		{"a break after text, Responses", modeltest.Step{Text: []string{"Hello", "x"}, After: 1, Break: modeltest.Cut},
			streamed(translatedResponses), "/openai/v1/responses", 200, []string{"Hello", "event: error\ndata: {\"type\":\"error\""}, nil},
		{"a break before text", modeltest.Step{Text: []string{"Hello"}, After: -1, Break: modeltest.Cut},
			streamed(translatedResponses), "/openai/v1/responses", 502, []string{"broke off"}, map[string]string{"X-Should-Retry": "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setting{script: modeltest.Sequence(c.step), budgets: userBudget(10_000_000)})
			a := w.post(c.path, c.body)
			if a.code != c.code {
				t.Errorf("status %d, want %d", a.code, c.code)
			}
			for _, s := range c.want {
				if !strings.Contains(a.body, s) {
					t.Errorf("%q is not in %s", s, a.body)
				}
			}
			for name, v := range c.head {
				if a.header.Get(name) != v {
					t.Errorf("%s is %q, want %q", name, a.header.Get(name), v)
				}
			}
			if strings.Contains(a.body, modeltest.Key) {
				t.Errorf("the provider's key is in %s", a.body)
			}
			if b := w.balance(); b.Reserved.Tokens != 0 || (b.Used.Tokens > 0) != strings.HasPrefix(c.name, "a break") {
				t.Errorf("the budget has %+v", b)
			}
		})
	}
}

// The events of a Responses answer are numbered from 0, in the order in which they are sent.
func TestTheEventsOfResponsesAreNumberedInTheirOrder(t *testing.T) {
	number := regexp.MustCompile(`"sequence_number":(\d+)`)
	for name, step := range map[string]modeltest.Step{
		"a text":             {Text: []string{"Hello", " there"}},
		"nothing":            {},
		"thinking":           {Thinking: "hm", Text: []string{"x"}},
		"calls":              {Calls: []modeltest.Call{{ID: "a", Name: "look", Input: `{"at":"sky"}`}, {ID: "b", Name: "look", Input: `{}`}}},
		"all of it":          {Thinking: "hm", Text: []string{"x"}, Calls: []modeltest.Call{{ID: "a", Name: "look", Input: `{"at":"sky"}`}}},
		"a break after text": {Text: []string{"Hello", "x"}, After: 1, Break: modeltest.Cut},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting{script: modeltest.Sequence(step)})
			a := w.post("/openai/v1/responses", streamed(translatedResponses))
			numbers := number.FindAllStringSubmatch(a.body, -1)
			if len(numbers) != strings.Count(a.body, "data: ") || len(numbers) < 3 || !strings.HasPrefix(a.body, "event: response.created\n") {
				t.Fatalf("%d %s", a.code, a.body)
			}
			for i, n := range numbers {
				if n[1] != strconv.Itoa(i) {
					t.Errorf("event %d has the number %s", i, n[1])
				}
			}
		})
	}
}

func TestWhatCannotBeTranslatedIsRefused(t *testing.T) {
	w := newWorld(t, setting{script: answers()})
	for _, c := range []struct{ path, body, want string }{
		{"/v1/messages", `{"model":"gpt-5.5","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "tools.0: a tool of type"},
		{"/v1/messages", `{"model":"gpt-5.5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}`, "messages.0.content.0.source"},
		{"/v1/messages", `{"model":"gpt-5.5","max_tokens":9,"messages":[{"role":"assistant","content":"The answer is"}]}`, "the client has begun"},
		{"/v1/messages", `{"model":"gpt-5.5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`, "there is no call"},
		{"/v1/messages", `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`, "max_tokens"},
		{"/openai/v1/chat/completions", `{"model":"claude-sonnet-4-6","n":2,"messages":[{"role":"user","content":"hi"}]}`, "n: more than one answer"},
		{"/openai/v1/chat/completions", `{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "input_audio"},
		{"/openai/v1/chat/completions", `{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"b"}]}`, "has no result"},
		{"/openai/v1/responses", `{"model":"claude-sonnet-4-6","input":"hi","previous_response_id":"resp_1"}`, "previous_response_id"},
		{"/openai/v1/responses", `{"model":"claude-sonnet-4-6","input":"hi","tools":[{"type":"web_search"}]}`, "tools[0]"},
		{"/openai/v1/responses", `{"model":"claude-sonnet-4-6","input":[]}`, "there must be a message"},
	} {
		a := w.post(c.path, c.body)
		if a.code != http.StatusBadRequest || !strings.Contains(a.body, c.want) || !strings.Contains(a.body, `"invalid_request_error"`) {
			t.Errorf("%s: %d %s, want %q", c.body, a.code, a.body, c.want)
		}
	}
	if n := len(w.anthropic.Requests()) + len(w.openai.Requests()); n > 0 {
		t.Errorf("%d requests reached a provider", n)
	}
}

func TestTokensAreEstimatedWhereTheProviderCannotCount(t *testing.T) {
	w := newWorld(t, setting{script: answers()})
	a := w.post("/v1/messages/count_tokens", `{"model":"gpt-5.5","messages":[{"role":"user","content":"Hello there, how are you?"}]}`)
	if a.code != http.StatusOK || !strings.HasPrefix(a.body, `{"input_tokens":`) || a.body == `{"input_tokens":0}` {
		t.Errorf("%d %s", a.code, a.body)
	}
}
