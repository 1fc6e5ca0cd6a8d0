package claudecode

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// streamed returns an answer of the model as the Messages API streams it.
func streamed(id, name string, blocks []block, resp *model.Response) []byte {
	var b bytes.Buffer
	event := func(kind string, fields map[string]any) {
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err != nil {
			panic(fmt.Sprintf("an event does not marshal: %v", err)) // it holds only plain data
		}
		_, _ = fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, data)
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": id, "type": "message", "role": "assistant", "model": name, "content": []block{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": tokens{Input: resp.Usage.GetInputTokens(), Output: 1},
	}})
	reason := "end_turn"
	for i, k := range blocks {
		empty, deltas := map[string]any{"type": k.Type}, []map[string]any{}
		switch k.Type {
		case "text":
			empty["text"] = ""
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": k.Text})
		case "thinking":
			empty["thinking"], empty["signature"] = "", ""
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": k.Thinking}, map[string]any{"type": "signature_delta", "signature": k.Signature})
		case "tool_use":
			reason = "tool_use"
			empty["id"], empty["name"], empty["input"] = k.ID, k.Name, map[string]any{}
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": string(k.Input)})
		}
		event("content_block_start", map[string]any{"index": i, "content_block": empty})
		for _, d := range deltas {
			event("content_block_delta", map[string]any{"index": i, "delta": d})
		}
		event("content_block_stop", map[string]any{"index": i})
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": resp.Usage.GetOutputTokens()}})
	event("message_stop", map[string]any{})
	return b.Bytes()
}
