package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// replay is a model whose stream is the given bytes.
type replay string

func (r replay) Stream(ctx context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	ctx, w := transport.Begin(ctx, "fuzz", "sk-of-the-fuzzer", 0)
	defer w.End()
	a := &answer{provider: "fuzz", model: "m", emit: emit, watch: w, sent: 400, limits: transport.Limits{Context: 1000, Output: 100}}
	return a.read(ctx, strings.NewReader(string(r)))
}

// FuzzStream checks that no stream of a server makes pieces interleave or miss
// in the answer, that no call with an id is there twice, that its faults are errors, that an answer without a finish
// reason and without [DONE] is none, and that its usage is one that can be.
func FuzzStream(f *testing.F) {
	for _, s := range oddStreams {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		resp, _, err := streamtest.Play(t.Context(), t, replay(stream), model.Request{})
		var e *model.Error
		if err != nil {
			if !errors.As(err, &e) || e.Message == "" || strings.Contains(e.Message, "sk-of-the-fuzzer") {
				t.Errorf("the error is %T: %v", err, err)
			}
			return
		}
		streamtest.CheckUsage(t, resp, 400+len(stream)+10_000)
		lower := strings.ToLower(stream)
		finish := strings.Contains(lower, "finish") || strings.Contains(lower, `\u00`) // a key may be written in escapes
		if !finish && !strings.Contains(stream, "[DONE]") && !strings.Contains(lower, "message") {
			t.Errorf("an answer without an end: %+v", resp)
		}
		seen := map[[3]string]bool{}
		for i, b := range resp.Blocks {
			u := b.GetToolUse()
			key := [3]string{u.GetProviderCallId(), u.GetTool(), canonical([]byte(u.GetArgumentsJson()))}
			if key[0] != "" && key[2] != "" && seen[key] {
				t.Errorf("a call is there twice: %v", u)
			}
			seen[key] = true
			if u != nil && !finish && !json.Valid([]byte(u.GetArgumentsJson())) && i == len(resp.Blocks)-1 {
				t.Errorf("the last call is not whole: %v", u)
			}
		}
	})
}

// oddStreams are streams as servers send them.
var oddStreams = []string{
	": hello\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning\":\"b\"}}]}\n\ndata: [DONE]\n",
	`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"x","function":{"name":"n","arguments":"{}"}},{"index":0,"function":{"name":"m","arguments":"{"}}]}}]}` + "\n" +
		`data: {"choices":[{"delta":{"content":"late","tool_calls":[{"id":"x"},{"function":{"name":"m"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":5}}}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"m"}}]}}]}` + "\n" + `data: {"choices":[{"delta":{"tool_calls":[{"id":"late"}]}}]}` + "\ndata: [DONE]\n",
	`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{}"}},{"index":1,"id":"x","function":{"name":"n","arguments":"{\"a\":1}"}}]}}]}` + "\n" +
		`data: {"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"n","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}]}`,
	`data: {"error":{"message":"m","code":7}}`,
	`{"error":{"message":"m","code":"insufficient_quota"}}`,
	`data: {"object":"error","message":"m","code":400}`,
	`{"detail":[{"loc":["body",0],"msg":"m"}]}`,
	`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`,
	"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"\xff\",\"arguments\":{\"a\":\"\xff\"}}}]},\"finish_reason\":\"\xff\"}]}\n",
	"<html><title>no</title>", "data: plain text\n\n", "event: error\n\n", "data: [DONE]",
	"\ufeffdata:{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\ndata:\"usage\":{\"prompt_tokens\":2e15,\"completion_tokens\":-4}}\r\rdata:[DO",
	`{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"text":"t"}]},{"text":"a"}],"tool_calls":[{"id":1,"function":{"name":"n","arguments":{"a":1}}}]}}],"usage":{"total_tokens":"9"}}`,
	`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"}],"tool_calls":[{"index":0,"extra_content":{"google":{}},"function":{"name":"n"}}]}}]}` + "\n" +
		`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"b","signature":"s"}]},"finish_reason":"stop"}]}`,
}
