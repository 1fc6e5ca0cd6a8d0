package aisdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat"+query, body)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	return chunks(t, text)
}

// waiting returns the message and the calls of a stream that ends because a person must say something.
func waiting(t *testing.T, all []chunk) (message string, calls []string) {
	t.Helper()
	for _, c := range all {
		switch c.kind() {
		case "start":
			message = c["messageId"].(string)
		case "tool-input-available":
			calls = append(calls, c["toolCallId"].(string))
		}
	}
	if last := all[len(all)-1]; last["finishReason"] != "tool-calls" {
		t.Fatalf("the stream ends with %v", last)
	}
	return message, calls
}

// answer is the body that goes on with a message; parts are JSON.
func answer(chat, message string, parts ...string) string {
	return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messageId":%q,"messages":[{"id":"m1","role":"user","parts":[]},{"id":%q,"role":"assistant","parts":[{"type":"step-start"},%s]}]}`,
		chat, message, message, strings.Join(parts, ","))
}

func responded(call string, yes bool) string {
	return fmt.Sprintf(`{"type":"dynamic-tool","toolName":"x","toolCallId":%q,"state":"approval-responded","input":{},"approval":{"id":%q,"approved":%v,"reason":"so I say"}}`, call, call, yes)
}

func given(call, output string) string {
	return fmt.Sprintf(`{"type":"dynamic-tool","toolName":"x","toolCallId":%q,"state":"output-available","input":{},"output":%s}`, call, output)
}

func TestTurnsByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
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
		// The same message again is the same turn.
		if again := brief(s.post(t, c.query, say("c-"+c.text, "m1", c.text))); again != c.want {
			t.Errorf("%s, once more: %s", c.text, again)
		}
	}
}

func TestAnswersByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const tool = `"clientTools":[{"name":"where","description":"Where the person is","inputSchema":{"type":"object"}}],`
	for _, c := range []struct {
		name, query, text, tools string
		parts                    func(calls []string) []string
		want                     string
	}{
		{"approved", "?agent=asker", "ask", "", func(c []string) []string { return []string{responded(c[0], true)} },
			"start start-step tool-output-available=File created successfully at: /workspace/note.txt finish-step start-step text-start text-delta=Written, or not. text-end finish-step finish=stop"},
		{"refused", "?agent=asker", "ask", "", func(c []string) []string { return []string{responded(c[0], false)} },
			"start start-step tool-output-denied finish-step start-step text-start text-delta=Written, or not. text-end finish-step finish=stop"},
		{"approved by version 5", "?agent=asker&version=5", "ask", "", func(c []string) []string { return []string{given(c[0], `{"approved":true}`)} },
			"start start-step tool-output-available=File created successfully at: /workspace/note.txt finish-step start-step text-start text-delta=Written, or not. text-end finish-step finish=stop"},
		{"two at once", "?agent=asker", "both", "", func(c []string) []string { return []string{responded(c[0], true), responded(c[1], false)} },
			"start start-step tool-output-available=File created successfully at: /workspace/a.txt tool-output-denied finish-step start-step text-start text-delta=Both are settled. text-end finish-step finish=stop"},
		{"a tool of the browser", "", "client", tool, func(c []string) []string { return []string{given(c[0], `"Berlin"`)} },
			"start start-step tool-output-available=Berlin finish-step start-step text-start text-delta=You are in Berlin text-end finish-step finish=stop"},
		{"a question", "", "question", "", func(c []string) []string { return []string{given(c[0], `{"answers":{"Which?":"B"}}`)} },
			"start data-question start-step tool-output-available=The user answered:\n- Which? B finish-step start-step text-start text-delta=You chose: The user answered:\n- Which? B text-end finish-step finish=stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chat := "chat of " + c.name
			message, calls := waiting(t, s.post(t, c.query, strings.Replace(say(chat, "m1", c.text), `"trigger"`, c.tools+`"trigger"`, 1)))
			path := "/v1/ai-sdk/chat/" + url.PathEscape(chat)
			if code, body := s.Call(t, http.MethodGet, path+"/stream", ""); code != http.StatusNoContent {
				t.Errorf("a turn that waits is streamed: %d %s", code, body)
			}
			body := answer(chat, message, c.parts(calls)...)
			got := brief(s.post(t, c.query, body))
			if got != c.want {
				t.Errorf("%s", got)
			}
			if again := brief(s.post(t, c.query, body)); again != got { // a repeated request
				t.Errorf("once more: %s", again)
			}
			code, history := s.Call(t, http.MethodGet, path, "")
			if code != http.StatusOK || !strings.Contains(history, message) || strings.Contains(history, "approval-requested") {
				t.Errorf("%d %s", code, history)
			}
		})
	}
}
