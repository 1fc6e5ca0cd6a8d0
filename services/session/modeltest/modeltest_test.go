package modeltest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

var client = &http.Client{}

// post sends a body with the right key, and gives the status and the answer.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", Key)
	req.Header.Set("Authorization", "Bearer "+Key)
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestMessagesRules(t *testing.T) {
	const (
		user = `{"role":"user","content":"hi"}`
		call = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"LS","input":{}}]}`
		back = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`
	)
	wrap := func(messages ...string) string {
		return `{"model":"m","max_tokens":2000,"stream":true,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	tests := []struct{ name, body, want string }{
		{"a conversation in order is answered", wrap(user, call, back), ""},
		{"no JSON", `{`, "not the JSON"},
		{"no max_tokens", `{"model":"m","stream":true,"messages":[` + user + `]}`, "max_tokens"},
		{"the assistant begins", wrap(call, back), "first message must use the user role"},
		{"an empty text", wrap(`{"role":"user","content":[{"type":"text","text":" "}]}`), "must be non-empty"},
		{"an empty message", wrap(`{"role":"user","content":[]}`), "content must not be empty"},
		{"a call without its result", wrap(user, call, user), "without tool_result blocks"},
		{"a result without its call", wrap(user, call, back, `{"role":"assistant","content":"ok"}`, back), "unexpected tool_use_id"},
		{"a result after text", wrap(user, call, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`), "must come first"},
		{"an id used twice", wrap(user, call, back, call, back), "must be unique"},
		{"input that is no object", wrap(user, strings.Replace(call, "{}", "[]", 1), back), "should be an object"},
		{"a prefilled answer", wrap(user, `{"role":"assistant","content":"I"}`), "prefilled"},
		{"thinking with another signature", wrap(user, `{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"forged"}]}`, user), "invalid signature"},
		{"thinking after text", wrap(user, `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"thinking","thinking":"x"}]}`, user), "thinking must come first"},
		{"a small budget of thinking", strings.Replace(wrap(user), `"stream"`, `"thinking":{"type":"enabled","budget_tokens":10},"stream"`, 1), "budget_tokens"},
		{"results for a message without thinking", strings.Replace(wrap(user, call, back), `"stream"`, `"thinking":{"type":"enabled","budget_tokens":1024},"stream"`, 1), "expected thinking"},
		{"two tools of a name", strings.Replace(wrap(user), `"stream"`, `"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}],"stream"`, 1), "tools.1.name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Anthropic(t, Sequence(Step{Text: []string{"ok"}}))
			status, text := post(t, s.URL+"/v1/messages", tt.body)
			verdict(t, s, status, text, tt.want, "event: message_stop")
		})
	}
}

func TestChatRules(t *testing.T) {
	const (
		user = `{"role":"user","content":"hi"}`
		call = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"LS","arguments":"{}"}}]}`
		back = `{"role":"tool","tool_call_id":"a","content":"x"}`
	)
	wrap := func(messages ...string) string {
		return `{"model":"m","stream":true,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	tests := []struct{ name, body, want string }{
		{"a conversation in order is answered", wrap(user, call, back, user), ""},
		{"no JSON", `{`, "not the JSON"},
		{"no messages", wrap(), "empty"},
		{"a call without its result", wrap(user, call, user), "must be followed by tool messages"},
		{"a call without its result at the end", wrap(user, call), "without results"},
		{"a result without its call", wrap(user, back), "wrong here"},
		{"an id used twice", wrap(user, call, back, call, back), "is wrong"},
		{"arguments that are no JSON", wrap(user, strings.Replace(call, `"{}"`, `"{"`, 1), back), "is wrong"},
		{"an empty answer", wrap(user, `{"role":"assistant","content":""}`), "wrong here"},
		{"an empty part", wrap(`{"role":"user","content":[{"type":"text","text":""}]}`), "is wrong"},
		{"both limits", strings.Replace(wrap(user), `"stream"`, `"max_tokens":1,"max_completion_tokens":1,"stream"`, 1), "exclude each other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := OpenAI(t, Sequence(Step{Text: []string{"ok"}}))
			status, text := post(t, s.URL+"/chat/completions", tt.body)
			verdict(t, s, status, text, tt.want, "data: [DONE]")
		})
	}
}

// verdict checks that a request was refused for the reason want, or answered
// to the end when want is empty.
func verdict(t *testing.T, s *Server, status int, text, want, end string) {
	t.Helper()
	if want == "" {
		if status != http.StatusOK || !strings.Contains(text, end) || s.Refused() != nil || len(s.Requests()) != 1 {
			t.Errorf("got %d %s", status, text)
		}
		return
	}
	if status != http.StatusBadRequest || !strings.Contains(text, want) || len(s.Refused()) != 1 || s.Requests() != nil {
		t.Errorf("got %d %s, want a refusal that says %q", status, text, want)
	}
}

func TestScriptsSeeTheConversation(t *testing.T) {
	body := `{"model":"m","max_tokens":9,"stream":true,"system":[{"type":"text","text":"sys"}],"tools":[{"name":"LS","input_schema":{"type":"object"}}],"messages":[
		{"role":"user","content":"first"},{"role":"assistant","content":"x"},{"role":"user","content":"second"},
		{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"LS","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"out"}]}]}`
	var got Request
	s := Anthropic(t, func(r Request) Step { got = r; return Step{Text: []string{"ok"}} })
	if status, text := post(t, s.URL+"/v1/messages", body); status != http.StatusOK {
		t.Fatal(text)
	}
	if got.UserText != "second" || got.LastResult != "out" || got.Step != 2 || got.System != "sys" || len(got.Tools) != 1 || len(got.Messages()) != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestResponsesRules(t *testing.T) {
	const (
		user  = `{"role":"user","content":"hi"}`
		call  = `{"type":"function_call","call_id":"a","name":"LS","arguments":"{}"}`
		back  = `{"type":"function_call_output","call_id":"a","output":"x"}`
		think = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sig-4-72735f31"}`
	)
	wrap := func(items ...string) string {
		return `{"model":"m","stream":true,"store":false,"input":[` + strings.Join(items, ",") + `]}`
	}
	with := func(field string) string { return strings.Replace(wrap(user), `"stream"`, field+`,"stream"`, 1) }
	tests := []struct{ name, body, want string }{
		{"a conversation in order is answered", wrap(user, think, call, back, user), ""},
		{"no JSON", `{`, "not the JSON"},
		{"no input", wrap(), "'input'"},
		{"a request that is to be stored", strings.Replace(wrap(user), "false", "true", 1), "store must be false"},
		{"a call without its result", wrap(user, call, user), "No tool output found"},
		{"a result without its call", wrap(user, back), "No tool call found"},
		{"an id used twice", wrap(user, call, back, call, back), "unique call_id"},
		{"input parts in an answer", wrap(user, `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "'output_text' and 'refusal'"},
		{"output parts of a user", wrap(`{"role":"user","content":[{"type":"output_text","text":"x"}]}`), "Supported values"},
		{"an address without a scheme for an image", wrap(`{"role":"user","content":[{"type":"input_image","image_url":"x"}]}`), "image_url"},
		{"a file without a name", wrap(`{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,AA=="}]}`), "filename"},
		{"a tool of a role", wrap(`{"role":"tool","content":"x"}`), "Invalid value: 'tool'"},
		{"an unknown item", wrap(`{"type":"item_reference","id":"x"}`), "not supported"},
		{"reasoning without what followed it", wrap(user, think, user), "required following item"},
		{"reasoning that changed", wrap(user, strings.Replace(think, "sig-4", "sig-5", 1), call, back), "could not be verified"},
		{"fields of Chat Completions", with(`"max_completion_tokens":100`), "Unsupported parameter"},
		{"a small limit", with(`"max_output_tokens":15`), "integer below minimum value"},
		{"an unknown summary", with(`"reasoning":{"summary":"long"}`), "'auto', 'concise', and 'detailed'"},
		{"a tool in the form of Chat Completions", with(`"tools":[{"type":"function","function":{"name":"LS"}}]`), "tools[0]"},
		{"a tool that is strict unasked", with(`"tools":[{"type":"function","name":"LS","parameters":{"type":"object"}}]`), "additionalProperties"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Responses(t, Sequence(Step{Text: []string{"ok"}}))
			status, text := post(t, s.URL+"/responses", tt.body)
			verdict(t, s, status, text, tt.want, "event: response.completed")
		})
	}
}
