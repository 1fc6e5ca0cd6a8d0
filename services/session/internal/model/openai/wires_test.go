package openai_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/openai"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// scenario reads a file, repeats what it read, and is cut off when asked for more.
func scenario(r modeltest.Request) modeltest.Step {
	usage := modeltest.Usage{Input: 100, Output: 20, CacheRead: 30}
	switch {
	case strings.Contains(r.UserText, "more"):
		return modeltest.Step{Text: []string{"There is ", "so mu"}, StopReason: "max_tokens", Usage: usage}
	case r.Step == 1:
		return modeltest.Step{
			Thinking: "Two files, perhaps.", Text: []string{"I look at ", "both.\u2028"}, Usage: usage,
			Calls: []modeltest.Call{{ID: "call_a", Name: "Read", Input: `{"path":"a","limit":12345678901234567890}`}, {ID: "call_b", Name: "Read", Input: `{"path":"\u00e9 \" \u0041"}`}},
		}
	}
	return modeltest.Step{Text: []string{"It says: ", r.LastResult}, Usage: usage}
}

// heard is what one wire made of the scenario.
type heard struct {
	Pieces []string
	Blocks []*sessionv1.Block
	Stops  []string
	Usage  []*sessionv1.Usage
}

// talk has a conversation of three answers with a model.
func talk(t *testing.T, m model.Model) (out heard) {
	t.Helper()
	messages := []*sessionv1.Message{streamtest.User(streamtest.Text("What do they say?"))}
	answer := func() *sessionv1.Message {
		r := model.Request{Model: "m", System: "Be brief.", Messages: messages, ThinkingTokens: 2000, Tools: []model.Tool{{Name: "Read", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
		resp, text, err := streamtest.Play(t.Context(), t, m, r)
		if err != nil {
			t.Fatal(err)
		}
		out.Pieces, out.Stops, out.Usage = append(out.Pieces, text), append(out.Stops, resp.StopReason), append(out.Usage, resp.Usage)
		for _, b := range resp.Blocks {
			b = proto.CloneOf(b)
			b.ProviderData = nil
			out.Blocks = append(out.Blocks, b)
		}
		return streamtest.Assistant(resp.Blocks...)
	}
	calls := answer()
	id := 0
	for _, b := range calls.GetBlocks() {
		if u := b.GetToolUse(); u != nil {
			id++
			u.CallId = "t." + string(rune('0'+id))
		}
	}
	messages = append(messages, calls, streamtest.User(
		streamtest.Result("t.1", sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "nothing"), streamtest.Result("t.2", sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "a word")))
	messages = append(messages, answer(), streamtest.User(streamtest.Text("more?")))
	answer()
	return out
}

// TestThreeWiresAnswerWordForWord serves one scenario as Messages, Chat Completions and
// Responses.
func TestThreeWiresAnswerWordForWord(t *testing.T) {
	messages, chat, responses := modeltest.Anthropic(t, scenario), modeltest.OpenAI(t, scenario), modeltest.Responses(t, scenario)
	config := func(s *modeltest.Server, api string) openai.Config {
		return openai.Config{Provider: "p", API: api, BaseURL: s.URL, Key: modeltest.Key, Idle: time.Minute, MaxOutputTokens: 8000}
	}
	want := talk(t, anthropic.Connect(anthropic.Access{Provider: "p", BaseURL: messages.URL, Key: modeltest.Key, Idle: time.Minute}).Model(anthropic.Limits{MaxOutputTokens: 8000}))
	for name, got := range map[string]heard{
		"chat":      talk(t, openai.New(config(chat, openai.Chat))),
		"responses": talk(t, openai.New(config(responses, openai.Responses))),
	} {
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, s := range map[string]*modeltest.Server{"messages": messages, "chat": chat, "responses": responses} {
		if s.Refused() != nil || len(s.Requests()) != 3 {
			t.Errorf("%s: %d requests, refused: %v", name, len(s.Requests()), s.Refused())
		}
	}
}

// TestTheAPIIsChosen asks two servers that have only one API each.
func TestTheAPIIsChosen(t *testing.T) {
	chat, responses := modeltest.OpenAI(t, scenario), modeltest.Responses(t, scenario)
	for _, tt := range []struct {
		s   *modeltest.Server
		api string
		ok  bool
	}{{chat, "", true}, {chat, openai.Chat, true}, {chat, openai.Responses, false}, {responses, openai.Responses, true}, {responses, "", false}} {
		m := openai.New(openai.Config{Provider: "p", API: tt.api, BaseURL: tt.s.URL, Key: modeltest.Key, MaxOutputTokens: 100})
		_, _, err := streamtest.Play(t.Context(), t, m, model.Request{Model: "m", Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("more"))}})
		if (err == nil) != tt.ok {
			t.Errorf("%s with %q: %v", tt.s.URL, tt.api, err)
		}
	}
}
