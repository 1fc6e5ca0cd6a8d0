package modelproxy_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/chat"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/messages"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/responses"
)

// seeds are requests with most of what the wires have.
var seeds = []string{
	`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r","is_error":true}]},{"role":"system","content":""}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"},"thinking":{"type":"enabled","budget_tokens":2000}}`,
	`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"stop":"x","tool_choice":"required","response_format":{"type":"json_object"},"parallel_tool_calls":false}`,
	`{"model":"m","instructions":"i","input":[{"role":"developer","content":"d"},{"role":"user","content":"u"},{"type":"reasoning","encrypted_content":"fairlead-1:eyJwIjoieCJ9","summary":[{"text":"t"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]}],"reasoning":{"effort":"high"},"text":{"format":{"type":"text"}}}`,
	`{"input":"u"}`, `[]`, `null`, `{"messages":null}`, `{"messages":[null]}`,
}

// FuzzDecode checks that every request is refused, or becomes one that the providers take.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		for wire := range byte(3) {
			f.Add(wire, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, wire byte, body []byte) {
		decode := []func([]byte) (*dialog.Request, error){messages.Decode, chat.Decode, responses.Decode}[wire%3]
		r, err := decode(body)
		if err != nil {
			return
		}
		if len(r.Messages) == 0 || r.Messages[len(r.Messages)-1].Role != sessionv1.Role_ROLE_USER {
			t.Fatalf("%s: the last message is not a user's", body)
		}
		calls := map[string]bool{}
		for i, m := range r.Messages {
			if len(m.Blocks) == 0 || i > 0 && r.Messages[i-1].Role == m.Role {
				t.Fatalf("%s: message %d is empty, or of the speaker before", body, i)
			}
			for _, b := range m.Blocks {
				if u := b.GetToolUse(); u != nil {
					calls[u.CallId] = true
				}
				if u := b.GetToolResult(); u != nil && !calls[u.CallId] {
					t.Fatalf("%s: a result has no call", body)
				}
			}
		}
	})
}
