package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// thinker is a server that thinks, asks for a call, and has rules about the
// reasoning in the messages that it gets.
type thinker struct {
	field  string // in which it sends reasoning
	rule   string // demands, demandsAll, refuses; empty takes all
	bodies []string
	refuse int
}

func (s *thinker) reply(body []byte) streamtest.Reply {
	s.bodies = append(s.bodies, string(body))
	var r struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return streamtest.Reply{Status: 400, Body: `{"error":{"message":"not JSON"}}`}
	}
	last := 0 // the last message of the user
	for i, m := range r.Messages {
		if string(m["role"]) == `"user"` {
			last = i
		}
	}
	for i, m := range r.Messages {
		_, has := m[s.field]
		_, calls := m["tool_calls"]
		switch {
		case has && s.rule == "refuses":
			s.refuse++
			return streamtest.Reply{Status: 422, Body: fmt.Sprintf(`{"detail":[{"type":"extra_forbidden","loc":["body","messages",%d,"%s"],"msg":"Extra inputs are not permitted"}]}`, i, s.field)}
		case !has && calls && (s.rule == "demandsAll" || s.rule == "demands" && i > last):
			s.refuse++
			return streamtest.Reply{Status: 400, Body: fmt.Sprintf("{\"error\":{\"message\":\"thinking is on but %s is missing in message %d\",\"type\":\"invalid_request_error\"}}", s.field, i)}
		}
	}
	if string(r.Messages[len(r.Messages)-1]["role"]) == `"tool"` {
		return streamtest.Reply{Body: `data: {"choices":[{"delta":{"` + s.field + `":"so","content":"done"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"}
	}
	return streamtest.Reply{Body: `data: {"choices":[{"delta":{"` + s.field + `":"hm","tool_calls":[{"index":0,"id":"c","function":{"name":"LS","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"}
}

// talk is a conversation that grows.
type talk struct {
	t        *testing.T
	messages []*sessionv1.Message
	turns    int
}

// turn has the model answer a message: a call, then text.
func (c *talk) turn(m *chat, modelName string) {
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

func (s *thinker) model(t *testing.T, provider, reasoning string) *chat {
	return newChat(Config{Provider: provider, BaseURL: streamtest.Serve(t, s.reply), MaxOutputTokens: 100, Idle: time.Minute, Reasoning: reasoning})
}

// TestReasoningGoesBackToTheServerThatWantsIt has servers that demand reasoning
// with the calls of a tool loop, demand it with all calls, refuse it, or take both.
func TestReasoningGoesBackToTheServerThatWantsIt(t *testing.T) {
	tests := []struct {
		rule, setting string
		refused       int   // requests, in two turns
		back          []int // how often reasoning went back with each accepted request
	}{
		{"", Auto, 0, []int{0, 1, 0, 1}},
		{"demands", Auto, 0, []int{0, 1, 0, 1}},
		{"demands", "", 0, []int{0, 1, 0, 1}},
		{"demandsAll", Auto, 1, []int{0, 1, 2, 3}},
		{"demandsAll", Always, 0, []int{0, 1, 2, 3}},
		{"refuses", Auto, 1, []int{0, 0, 0, 0}},
		{"refuses", Never, 0, []int{0, 0, 0, 0}},
	}
	for _, field := range []string{"reasoning_content", "reasoning"} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, which the server %s, set to %s", field, tt.rule, tt.setting), func(t *testing.T) {
				s := &thinker{field: field, rule: tt.rule}
				m := s.model(t, "odd", tt.setting)
				c := &talk{t: t}
				c.turn(m, "a")
				c.turn(m, "a")
				var back []int
				for i, body := range s.bodies {
					if s.accepted(i, tt.refused) {
						back = append(back, strings.Count(body, `"`+field+`":`))
					}
				}
				if diff := cmp.Diff(tt.back, back); diff != "" || s.refuse != tt.refused {
					t.Errorf("%d requests were refused: %s", s.refuse, diff)
				}
			})
		}
	}
}

// accepted reports whether a request was not the refused one, which the next one repeats in another way.
func (s *thinker) accepted(i, refused int) bool {
	roles := func(body string) int { return strings.Count(body, `"role"`) }
	return refused == 0 || i+1 == len(s.bodies) || roles(s.bodies[i]) != roles(s.bodies[i+1])
}

// TestReasoningGoesToNoOtherModel changes the model and the provider in the middle
// of a conversation, and back.
func TestReasoningGoesToNoOtherModel(t *testing.T) {
	first, second := &thinker{field: "reasoning_content", rule: "demands"}, &thinker{field: "reasoning", rule: "refuses"}
	one, other := first.model(t, "one", Auto), second.model(t, "other", Never)
	c := &talk{t: t}
	c.turn(one, "a")
	c.turn(other, "a")
	c.turn(one, "b")
	c.turn(one, "a")
	if second.refuse > 0 || first.refuse > 0 {
		t.Errorf("%d and %d requests were refused", first.refuse, second.refuse)
	}
	for i, body := range second.bodies {
		if strings.Contains(body, "reasoning") {
			t.Errorf("request %d to the other provider: %s", i, body)
		}
	}
	if n := strings.Count(first.bodies[len(first.bodies)-1], `"hm"`); n != 1 {
		t.Errorf("%d pieces of reasoning went back: %s", n, first.bodies[len(first.bodies)-1])
	}
	always := (&thinker{field: "reasoning_content"}).model(t, "one", Always)
	body, err := always.body(model.Request{Model: "b", Messages: c.messages}, all)
	if err != nil || strings.Count(string(body), `"reasoning_content":"hm"`) != 1 {
		t.Errorf("with another model's messages: %v, %s", err, body)
	}
}

// TestADemandForReasoningThatNeverCameIsMet has calls of another provider before
// those of a server that demands reasoning with all of them.
func TestADemandForReasoningThatNeverCameIsMet(t *testing.T) {
	s := &thinker{field: "reasoning_content", rule: "demandsAll"}
	c := &talk{t: t, messages: []*sessionv1.Message{
		streamtest.User(streamtest.Text("hi")), streamtest.Assistant(streamtest.Use("t0.0", "toolu_1", "LS", "{}")), streamtest.User(streamtest.Result("t0.0", ok, "x")),
		streamtest.Assistant(streamtest.Text("done")),
	}}
	c.turn(s.model(t, "odd", Auto), "a")
	if s.refuse != 1 {
		t.Errorf("%d requests were refused", s.refuse)
	}
}

func TestARefusalForAnotherReasonIsNotTriedAgain(t *testing.T) {
	for _, body := range []string{`{"error":{"message":"reasoning_effort is unknown"}}`, `{"error":{"message":"max_tokens is missing"}}`} {
		n := 0
		m := newChat(Config{Provider: "odd", MaxOutputTokens: 1, BaseURL: streamtest.Serve(t, func([]byte) streamtest.Reply {
			n++
			return streamtest.Reply{Status: 400, Body: body}
		})})
		_, _, err := streamtest.Play(t.Context(), t, m, ask("hi"))
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Refused || n != 1 {
			t.Errorf("%d requests, %v", n, err)
		}
	}
}

// TestWhatCameWithACallGoesBackWithIt has signatures beside calls and reasoning
// details, in pieces.
func TestWhatCameWithACallGoesBackWithIt(t *testing.T) {
	var sent []string
	m := newChat(Config{Provider: "odd", MaxOutputTokens: 1, BaseURL: streamtest.Serve(t, func(body []byte) streamtest.Reply {
		sent = append(sent, string(body))
		return streamtest.Reply{Body: `data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"h"}]}}]}

data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"m","signature":"sig"},{"type":"reasoning.encrypted","index":1,"data":"xyz"}],
data: "tool_calls":[{"index":0,"id":"c","extra_content":{"google":{"thought_signature":"abc"}},"function":{"name":"LS","arguments":"{}"}}]},"finish_reason":"stop"}]}

`}
	})})
	r := ask("hi")
	resp, _, err := streamtest.Play(t.Context(), t, m, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range resp.Blocks {
		if u := b.GetToolUse(); u != nil {
			u.CallId = "t.1"
		}
	}
	r.Messages = append(r.Messages, streamtest.Assistant(resp.Blocks...), streamtest.User(streamtest.Result("t.1", ok, "x")))
	for _, name := range []string{"gpt", "another"} {
		r.Model = name
		if _, _, err := streamtest.Play(t.Context(), t, m, r); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`"reasoning_details":[{"index":0,"signature":"sig","text":"hm","type":"reasoning.text"},{"data":"xyz","index":1,"type":"reasoning.encrypted"}]`, `"extra_content":{"google":{"thought_signature":"abc"}}`}
	for _, w := range want {
		if !strings.Contains(sent[1], w) || strings.Contains(sent[2], w) {
			t.Errorf("%s is not in the first or is in the second of\n%s\n%s", w, sent[1], sent[2])
		}
	}
}
