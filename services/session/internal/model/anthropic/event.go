package anthropic

import (
	"encoding/json"
	"errors"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// event is the part of an event of the stream that we need. A model sends one
// for each token, and the SDK's own type of all events takes several times as
// long to decode.
type event struct {
	Type         string          `json:"type"`
	Index        transport.Count `json:"index"`
	Message      message         `json:"message"`
	ContentBlock contentBlock    `json:"content_block"`
	Delta        delta           `json:"delta"`
	Usage        usage           `json:"usage"`
}

// message is the start of a message, or a whole one.
type message struct {
	ID         string         `json:"id"`
	Content    []contentBlock `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      usage          `json:"usage"`
}

// UnmarshalJSON accepts any fields in events of unknown kinds: the API may add
// kinds at any time.
func (e *event) UnmarshalJSON(raw []byte) error {
	type plain event
	err := json.Unmarshal(raw, (*plain)(e))
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) && !e.known() {
		return nil
	}
	return err
}

func (e *event) known() bool {
	switch e.Type {
	case "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
		return true
	}
	return false
}

// contentBlock is the start of a block.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// delta is a piece of a block, or the end of the message.
type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

// usage counts tokens. The counts of later events are sums.
type usage struct {
	Input      transport.Count `json:"input_tokens"`
	Output     transport.Count `json:"output_tokens"`
	CacheRead  transport.Count `json:"cache_read_input_tokens"`
	CacheWrite transport.Count `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking transport.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON treats values of another form as absent.
func (u *usage) UnmarshalJSON(raw []byte) error {
	type plain usage
	_ = json.Unmarshal(raw, (*plain)(u))
	return nil
}
