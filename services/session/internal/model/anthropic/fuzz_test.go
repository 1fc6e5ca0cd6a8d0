package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// replay is a model whose stream has the given events, one a line.
type replay string

var errEnd = errors.New("ended too early")

func (r replay) Stream(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	a := answer{provider: "fuzz", emit: emit}
	for line := range strings.Lines(string(r)) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			return nil, errEnd
		}
		done, err := a.event(e)
		if err != nil {
			return nil, err
		}
		if done {
			return a.response(), nil
		}
	}
	return nil, errEnd
}

// FuzzStream checks that no stream of a server makes pieces interleave or miss
// in the answer, and that its faults are errors.
func FuzzStream(f *testing.F) {
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}
{"type":"message_stop"}`)
	f.Add(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"i","name":"n","input":{"a":1}}}
{"type":"content_block_stop","index":1}
{"type":"message_stop"}`)
	f.Add(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"t","signature":"s"}}
{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"d"}}`)
	f.Add(`{"type":"news","delta":"of another form","index":"0"}
{"type":"message_delta","delta":{"stop_reason":"end_turn"}}
{"type":"message_stop"}`)
	f.Fuzz(func(t *testing.T, stream string) {
		resp, _, err := streamtest.Play(t.Context(), t, replay(stream), model.Request{})
		var e *model.Error
		if err != nil && !errors.As(err, &e) && !errors.Is(err, errEnd) {
			t.Errorf("the error is %T: %v", err, err)
		}
		if err == nil && resp.StopReason == "" {
			t.Errorf("the answer is %+v", resp)
		}
	})
}
