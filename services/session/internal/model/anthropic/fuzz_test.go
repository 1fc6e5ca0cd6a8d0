package anthropic

import (
	"context"
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
	a := &answer{provider: "fuzz", emit: emit, watch: w, sent: 400, limits: transport.Limits{Context: 1000, Output: 100}}
	return a.read(ctx, strings.NewReader(string(r)))
}

// FuzzStream checks that no stream of a server makes pieces interleave or miss
// in the answer, that its faults are errors, that an answer without a stop reason
// is none, and that its usage is one that can be.
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
		if lower := strings.ToLower(stream); !strings.Contains(lower, "reason") && !strings.Contains(lower, `\u00`) { // a key may be written in escapes
			t.Errorf("an answer without an end: %+v", resp)
		}
	})
}

// events writes a stream in the form of the API.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("event: x\ndata: " + d + "\n\n")
	}
	return b.String()
}

// oddStreams are streams as servers send them.
var oddStreams = []string{
	events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`),
	events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":2e15,"output_tokens":-1}}}`, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"i","name":"n","input":{"a":1}}}`,
		`{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`),
	events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"t","signature":"s"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"d"}}`),
	events(`{"type":"news","delta":"of another form","index":"0"}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`),
	events(`{"type":"message_delta","delta":{"stop_reason":null}}`, `{"type":"message_stop"}`),
	"event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\r\n\r\n",
	events("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"\xff\",\"name\":\"n\",\"input\":{\"a\":\"\xff\"}}}", `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`),
	"event: error\rdata: plain\r\r", "event: ping\ndata: {}\n\n", "<html>", `{"error":"m"}`, `{"type":"error","error":{"type":"billing_error"}}`,
	`{"type":"message","id":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"i","name":"n","input":{}}],"stop_reason":"end_turn","usage":{"input_tokens":"7"}}`,
	"\ufeffdata:{\"type\":\"message_delta\",\ndata:\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\ndata:{\"type",
}
