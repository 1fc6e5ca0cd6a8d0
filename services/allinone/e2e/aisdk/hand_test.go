package aisdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// say is the body of a new message.
func say(chat, id, text string) string {
	return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":%q}]}]}`, chat, id, text)
}

// chunk is a piece of a stream as it came.
type chunk map[string]any

func (c chunk) kind() string { s, _ := c["type"].(string); return s }

// chunks reads a whole stream.
func chunks(t *testing.T, body string) []chunk {
	t.Helper()
	var all []chunk
	frames := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if len(frames) == 0 || frames[len(frames)-1] != "data: [DONE]" {
		t.Fatalf("the stream does not end with [DONE]: %s", body)
	}
	for _, f := range frames[:len(frames)-1] {
		if strings.HasPrefix(f, ":") {
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &c); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
		all = append(all, c)
	}
	return all
}

// brief returns a stream in few words, without what passes.
func brief(all []chunk) string {
	var out []string
	for _, c := range all {
		switch {
		case c["transient"] == true:
		case c.kind() == "text-delta" || c.kind() == "reasoning-delta":
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1], c.kind()+"=") {
				out[n-1] += c["delta"].(string)
				continue
			}
			out = append(out, c.kind()+"="+c["delta"].(string))
		case c.kind() == "tool-input-delta":
			if n := len(out); n == 0 || out[n-1] != c.kind() {
				out = append(out, c.kind())
			}
		case c["output"] != nil:
			out = append(out, fmt.Sprintf("%s=%v", c.kind(), c["output"]))
		case c["finishReason"] != nil:
			out = append(out, fmt.Sprintf("%s=%v", c.kind(), c["finishReason"]))
		default:
			out = append(out, c.kind())
		}
	}
	return strings.Join(out, " ")
}

func (s *server) post(t *testing.T, query, body string) []chunk {
	t.Helper()
	code, text := s.call(t, http.MethodPost, "/v1/ai-sdk/chat"+query, body)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	return chunks(t, text)
}

func TestTurnsByHand(t *testing.T) {
	s := serve(t, "open")
	for _, c := range []struct{ query, text, want string }{
		{"", "hello", "start start-step text-start text-delta=You said: hello text-end finish-step finish=stop"},
		{"", "think", "start start-step reasoning-start reasoning-delta=Let me see. reasoning-end text-start text-delta=Done thinking. text-end finish-step finish=stop"},
		{"", "tool", "start start-step text-start text-delta=I look. text-end tool-input-start tool-input-delta tool-input-available data-checkpoint tool-output-available=9007199254740993 finish-step start-step text-start text-delta=It says 9007199254740993 text-end finish-step finish=stop"},
		{"", "fail", "start start-step finish-step message-metadata error"},
		{"?agent=short", "loop", "start start-step tool-input-start tool-input-delta tool-input-available data-checkpoint tool-output-available=The command ran and wrote nothing. finish-step start-step text-start text-delta=The turn reached its limit of 1 model calls. Send another message to let the agent continue, or allow more with limits.max_steps. text-end finish-step finish=length"},
		{"?agent=asker", "ask", "start start-step text-start text-delta=I write it. text-end tool-input-start tool-input-delta tool-input-available data-checkpoint tool-approval-request finish-step finish=tool-calls"},
	} {
		got := brief(s.post(t, c.query, say("c-"+c.text, "m1", c.text)))
		if got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}
