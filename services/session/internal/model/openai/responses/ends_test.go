package responses

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// play streams from a server that answers each request with the reply.
func play(t *testing.T, reply streamtest.Reply) (*model.Response, error) {
	t.Helper()
	m := New(Config{Provider: "odd", BaseURL: streamtest.Serve(t, func([]byte) streamtest.Reply { return reply }), MaxOutputTokens: 100, ContextTokens: 1000, Idle: time.Minute})
	resp, _, err := streamtest.Play(t.Context(), t, m, ask("hi"))
	return resp, err
}

// events writes events as servers do; each is its JSON without the type.
func events(kinds ...string) string {
	var b strings.Builder
	for _, k := range kinds {
		kind, fields, _ := strings.Cut(k, " ")
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
	}
	return b.String()
}

const (
	whole = `{"id":"r","object":"response","status":"completed","output":[` +
		`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e"},` +
		`{"type":"message","id":"m","content":[{"type":"output_text","text":"hi"},{"type":"output_text","text":"ho"}]},` +
		`{"type":"web_search_call","id":"w"},` +
		`{"type":"function_call","id":"f","call_id":"c","name":"LS","arguments":"{\"a\":1}"}],` +
		`"usage":{"input_tokens":7,"output_tokens":9,"input_tokens_details":{"cached_tokens":3}}}`
	end      = `response.completed ,"response":{"id":"r","status":"completed","output":[]}`
	added    = `response.output_item.added ,"output_index":0,"item":{"type":"message","id":"m","content":[]}`
	piece    = `response.output_text.delta ,"output_index":0,"item_id":"m","content_index":0,"delta":"hi"`
	textEnd  = `response.output_text.done ,"output_index":0,"item_id":"m","content_index":0,"text":"hi there"`
	itemEnd  = `response.output_item.done ,"output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"hi there, you"}]}`
	callNew  = `response.output_item.added ,"output_index":1,"item":{"type":"function_call","id":"f","call_id":"c","name":"LS","arguments":""}`
	callArgs = `response.function_call_arguments.delta ,"output_index":1,"item_id":"f","delta":"{\"a\":"`
)

func TestOddStreams(t *testing.T) {
	call := `call LS {"a":1} c`
	tests := []struct {
		name, body string
		want       []string
		stop       string
	}{
		{"a whole response in place of a stream", whole, []string{"thinking a\n\nb", "text hi\n\nho", call}, "tool_use"},
		{"only the last event", events(`response.completed ,"response":` + whole), []string{"thinking a\n\nb", "text hi\n\nho", call}, "tool_use"},
		{"no ends of items", events(added, piece, end), []string{"text hi"}, "end_turn"},
		{"ends bring what pieces lack", events(added, piece, textEnd, itemEnd, end), []string{"text hi there, you"}, "end_turn"},
		{"no start of an item", events(piece, end), []string{"text hi"}, "end_turn"},
		{"the last event ends a call", events(added, piece, itemEnd, callNew, callArgs, `response.completed ,"response":{"status":"completed","output":[{"type":"message"},{"type":"function_call","call_id":"c","name":"LS","arguments":"{\"a\":1}"}]}`), []string{"text hi there, you", call}, "tool_use"},
		{"one index for all items", events(
			`response.output_item.added ,"output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"LS"}`, `response.output_item.done ,"output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"LS","arguments":"{\"a\":1}"}`,
			`response.output_item.added ,"output_index":0,"item":{"type":"function_call","id":"g","call_id":"d","name":"LS"}`, `response.output_item.done ,"output_index":0,"item":{"type":"function_call","id":"g","call_id":"d","name":"LS","arguments":"{}"}`, end),
			[]string{call, "call LS {} d"}, "tool_use"},
		{"other ids with every event", events(added, `response.output_text.delta ,"output_index":0,"item_id":"x","delta":"hi"`, `response.output_item.done ,"output_index":0,"item":{"type":"message","id":"y","content":[{"type":"output_text","text":"hi"}]}`, end), []string{"text hi"}, "end_turn"},
		{"unknown events and items", events(`response.queued ,"delta":{"a":1}`, `keepalive `, `response.output_item.added ,"output_index":0,"item":{"type":"mcp_call"}`, `response.output_item.done ,"output_index":0,"item":{"type":"mcp_call"}`, end), nil, "end_turn"},
		{"open reasoning", events(`response.reasoning_text.delta ,"output_index":0,"content_index":0,"delta":"hm"`, strings.ReplaceAll(piece, `"output_index":0`, `"output_index":1`), end), []string{"thinking hm", "text hi"}, "end_turn"},
		{"an incomplete response for another reason", events(piece, `response.incomplete ,"response":{"incomplete_details":{"reason":"max_tool_calls"}}`), []string{"text hi"}, "max_tokens"},
		{"an incomplete response without details", events(piece, `response.incomplete ,"response":{"incomplete_details":null}`), []string{"text hi"}, "max_tokens"},
		{"[DONE] at the end", events(piece, end) + "data: [DONE]\n\n", []string{"text hi"}, "end_turn"},
		{"no names of events", strings.ReplaceAll(events(piece, end), "event: ", ": "), []string{"text hi"}, "end_turn"},
	}
	for _, tt := range tests {
		for _, pieces := range []int{0, 7} {
			t.Run(fmt.Sprintf("%s, %d bytes at a time", tt.name, pieces), func(t *testing.T) {
				resp, err := play(t, streamtest.Reply{Body: tt.body, Piece: pieces})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" || resp.StopReason != tt.stop {
					t.Errorf("stop %q, want %q; blocks:\n%s", resp.StopReason, tt.stop, diff)
				}
			})
		}
	}
}

func TestErrorsInsideAnAnswer(t *testing.T) {
	tests := []struct {
		name, body string
		kind       model.ErrorKind
		says       string
	}{
		{"a failed response", events(piece, `response.failed ,"response":{"status":"failed","error":{"code":"server_error","message":"it broke"}}`), model.Unavailable, "it broke"},
		{"a failed response for an image", events(`response.failed ,"response":{"status":"failed","error":{"code":"invalid_image_format","message":"no such image"}}`), model.Refused, "no such image"},
		{"a failed response for the rate", events(`response.failed ,"response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}`), model.Unavailable, "slow down"},
		{"a failed response without a reason", events(`response.failed ,"response":{"status":"failed","error":null}`), model.Unavailable, "gives no reason"},
		{"a cancelled response", events(`response.cancelled ,"response":{"status":"cancelled"}`), model.Unavailable, "gives no reason"},
		{"a whole response that failed", `{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"no"}}`, model.Refused, "no"},
		{"an error event", events(`error ,"code":"insufficient_quota","message":"pay first","param":null`), model.Billing, "pay first"},
		{"an error event with an error in it", events(`error ,"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"too long"}`), model.ContextFull, "too long"},
		{"an error without a type", `data: {"error":{"message":"who are you","code":401}}` + "\n\n", model.Authentication, "requires a key"},
		{"an error as a whole body", `{"error":{"message":"no such model","code":"model_not_found"}}`, model.Refused, "no such model"},
		{"a page", "<html><title>nothing here</title></html>", model.Refused, "nothing here"},
		{"plain text", "upstream is down", model.Unavailable, "upstream is down"},
		{"an event that is not one", "data: {\"a\":1}\n\n", model.Unavailable, "malformed"},
		{"a field of another form", events(`response.output_text.delta ,"delta":{"a":1}`), model.Unavailable, "malformed"},
		{"arguments that change", events(callNew, callArgs, `response.function_call_arguments.done ,"output_index":1,"arguments":"{\"b\":1}"`, end), model.Unavailable, "changed"},
		{"two items with one index", events(callNew, strings.ReplaceAll(piece, `"output_index":0`, `"output_index":1`), end), model.Unavailable, "one index"},
		{"a piece after the end", events(added, itemEnd, piece, end), model.Unavailable, "after its end"},
		{"an end within an event", events(piece) + "data: {\"type\":", model.Unavailable, "broke off"},
		{"nothing", "", model.Unavailable, "broke off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := play(t, streamtest.Reply{Body: tt.body})
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestABlockThatTheProviderNames(t *testing.T) {
	r := ask("hi")
	r.Messages[0].Blocks = append(r.Messages[0].Blocks, streamtest.Image())
	m := New(Config{Provider: "odd", MaxOutputTokens: 100, BaseURL: streamtest.Serve(t, func([]byte) streamtest.Reply {
		return streamtest.Reply{Status: 400, Body: `{"error":{"message":"Invalid 'input[0].content[1].image_url'. The image is not valid.","code":"invalid_value"}}`}
	})})
	_, _, err := streamtest.Play(t.Context(), t, m, r)
	var e *model.Error
	if !errors.As(err, &e) || len(e.Named) != 1 || e.Named[0] != r.Messages[0].GetBlocks()[1] || !e.AboutMedia() {
		t.Errorf("got %+v", err)
	}
}

// TestUsageBeyondTheModel has numbers that no model can use.
func TestUsageBeyondTheModel(t *testing.T) {
	resp, err := play(t, streamtest.Reply{Body: events(piece, `response.completed ,"response":{"usage":{"input_tokens":2e15,"output_tokens":-4,"output_tokens_details":[]}}`)})
	if err != nil || resp.Warning == "" || resp.Usage.GetInputTokens() > 1000 {
		t.Errorf("%v: %v", err, resp)
	}
}
