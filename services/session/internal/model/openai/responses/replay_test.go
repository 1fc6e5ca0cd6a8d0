package responses

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// talk is a conversation that grows.
type talk struct {
	t        *testing.T
	messages []*sessionv1.Message
	turns    int
}

// turn has the model answer a message: a call, then text.
func (c *talk) turn(m *Model, modelName string) {
	c.t.Helper()
	c.turns++
	c.messages = append(c.messages, streamtest.User(streamtest.Text("go")))
	for step := range 2 {
		resp, _, err := streamtest.Play(c.t.Context(), c.t, m, model.Request{Model: modelName, Messages: c.messages})
		if err != nil {
			c.t.Fatalf("turn %d, step %d: %v", c.turns, step, err)
		}
		for _, b := range resp.Blocks {
			if u := b.GetToolUse(); u != nil {
				u.CallId = fmt.Sprintf("t%d.%d", c.turns, step)
			}
		}
		c.messages = append(c.messages, streamtest.Assistant(resp.Blocks...))
		if step == 0 {
			c.messages = append(c.messages, streamtest.User(streamtest.Result(fmt.Sprintf("t%d.0", c.turns), ok, "a file")))
		}
	}
}

// thinks calls a tool, then says something, and thinks before both.
func thinks(r modeltest.Request) modeltest.Step {
	if r.Step == 1 {
		return modeltest.Step{Thinking: "which file?", Redacted: "x", Text: []string{"I look"}, Phase: "commentary", Calls: []modeltest.Call{{Name: "LS", Input: "{}"}}}
	}
	return modeltest.Step{Thinking: "that one", Text: []string{"done"}, Phase: "final_answer"}
}

// items returns the types of a request's input, and the phases of its texts.
func items(r modeltest.Request) (out []string) {
	list, _ := r.Body["input"].([]any)
	for _, it := range list {
		m, _ := it.(map[string]any)
		name := fmt.Sprint(m["type"])
		if m["role"] != nil {
			name = fmt.Sprint(m["role"])
		}
		if m["phase"] != nil {
			name += " " + fmt.Sprint(m["phase"])
		}
		out = append(out, name)
	}
	return out
}

// TestReasoningGoesBackWithinItsLoop checks what each request of two turns has; the
// fake refuses reasoning that changed or lacks what followed it.
func TestReasoningGoesBackWithinItsLoop(t *testing.T) {
	first := []string{"user"}
	looked := []string{"assistant commentary", "function_call", "function_call_output"}
	thought := append([]string{"reasoning", "reasoning"}, looked...)
	join := func(lists ...[]string) (out []string) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	final := []string{"assistant final_answer"}
	tests := []struct {
		name   string
		replay Replay
		want   [][]string
	}{
		{"that of the loop", ReplayLoop, [][]string{first, join(first, thought), join(first, looked, final, first), join(first, looked, final, first, thought)}},
		{"all", ReplayAll, [][]string{first, join(first, thought), join(first, thought, []string{"reasoning"}, final, first), join(first, thought, []string{"reasoning"}, final, first, thought)}},
		{"none", ReplayNone, [][]string{first, join(first, looked), join(first, looked, final, first), join(first, looked, final, first, looked)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Responses(t, thinks)
			c := &talk{t: t}
			m := newModel(s, func(c *Config) { c.Replay = tt.replay })
			c.turn(m, "a")
			c.turn(m, "a")
			var got [][]string
			for _, r := range s.Requests() {
				got = append(got, items(r))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || s.Refused() != nil {
				t.Errorf("%v: %s", s.Refused(), diff)
			}
		})
	}
}

// TestReasoningGoesToNoOtherModel changes the model and the provider in the middle of
// a conversation.
func TestReasoningGoesToNoOtherModel(t *testing.T) {
	s := modeltest.Responses(t, thinks)
	other := newModel(s, func(c *Config) { c.Provider, c.Replay = "other", ReplayAll })
	c := &talk{t: t}
	c.turn(newModel(s), "a")
	before := len(s.Requests())
	c.turn(other, "a")
	c.turn(newModel(s, func(c *Config) { c.Replay = ReplayAll }), "b")
	if s.Refused() != nil {
		t.Error(s.Refused())
	}
	for i, r := range s.Requests()[before:] {
		if n := strings.Count(string(r.Raw), `"type":"reasoning"`); n != []int{0, 2, 0, 2}[i] {
			t.Errorf("request %d has %d items of reasoning", i, n)
		}
	}
}

// TestReasoningWithoutWhatFollowedItStaysOut has an answer that ended in reasoning.
func TestReasoningWithoutWhatFollowedItStaysOut(t *testing.T) {
	s := modeltest.Responses(t, thinks)
	m := newModel(s)
	c := &talk{t: t}
	c.turn(m, "a")
	last := c.messages[len(c.messages)-1]
	last.Blocks = append(last.Blocks, last.GetBlocks()[0])
	c.messages = append(c.messages, streamtest.User(streamtest.Text("more")))
	if _, _, err := streamtest.Play(t.Context(), t, newModel(s, func(c *Config) { c.Replay = ReplayAll }), model.Request{Model: "a", Messages: c.messages}); err != nil || s.Refused() != nil {
		t.Errorf("%v, %v", err, s.Refused())
	}
}

// TestAModelThatRefusesToBeAskedAboutReasoning has servers that refuse what models
// without reasoning, and organizations that are not verified, must not ask for.
func TestAModelThatRefusesToBeAskedAboutReasoning(t *testing.T) {
	refuse := func(has func(modeltest.Request) bool, message string) modeltest.Script {
		return func(r modeltest.Request) modeltest.Step {
			if has(r) {
				return modeltest.Step{Status: http.StatusBadRequest, ErrorType: "invalid_request_error", ErrorMessage: message}
			}
			return modeltest.Step{Text: []string{"ok"}}
		}
	}
	asksInclude := func(r modeltest.Request) bool { return r.Body["include"] != nil }
	asksSummary := func(r modeltest.Request) bool { return strings.Contains(string(r.Raw), `"summary":"auto"`) }
	tests := []struct {
		name   string
		script modeltest.Script
		sent   int // requests for two answers
		fails  bool
	}{
		{"encrypted content", refuse(asksInclude, "Encrypted content is not supported with this model."), 3, false},
		{"a summary", refuse(asksSummary, "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general"), 3, false},
		{"something else", refuse(asksInclude, "Unsupported parameter: 'temperature' is not supported with this model."), 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Responses(t, tt.script)
			m := newModel(s, func(c *Config) { c.ReasoningEffort = "low" })
			for range 2 {
				if _, _, err := streamtest.Play(t.Context(), t, m, ask("hi")); (err != nil) != tt.fails {
					t.Fatal(err)
				}
				if tt.fails {
					break
				}
			}
			if n := len(s.Requests()); n != tt.sent {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// TestReasoningThatTheServerNoLongerAccepts has reasoning whose key is gone: the turn
// goes on without it, and later reasoning goes back again.
func TestReasoningThatTheServerNoLongerAccepts(t *testing.T) {
	s := modeltest.Responses(t, thinks)
	m := newModel(s)
	c := &talk{t: t}
	c.turn(m, "a")
	c.messages = c.messages[:3] // the user, the call, its result
	for _, b := range c.messages[1].GetBlocks() {
		if d := b.GetProviderData(); b.GetThinking() != nil {
			d.Data = []byte(strings.Replace(string(d.GetData()), `"encrypted":"sig-`, `"encrypted":"old-`, 1))
		}
	}
	resp, _, err := streamtest.Play(t.Context(), t, m, model.Request{Model: "a", Messages: c.messages})
	if err != nil || len(s.Refused()) != 1 || !strings.Contains(s.Refused()[0], "could not be verified") {
		t.Fatalf("%v, refused: %v", err, s.Refused())
	}
	c.messages = append(c.messages, streamtest.Assistant(resp.Blocks...))
	c.turn(m, "a")
	last := s.Requests()[len(s.Requests())-1]
	if n := strings.Count(string(last.Raw), `"type":"reasoning"`); n != 2 || len(s.Refused()) != 1 {
		t.Errorf("%d items of reasoning went back, refused: %v", n, s.Refused())
	}
}
