package responses

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// event is the part of an event of the stream that we need. A model sends one for
// each token, and the SDK's own type of all events takes eight times as long to decode.
type event struct {
	Type      string          `json:"type"`
	Index     transport.Count `json:"output_index"`
	ItemID    string          `json:"item_id"`
	Part      transport.Count `json:"content_index"`
	Summary   transport.Count `json:"summary_index"`
	Delta     string          `json:"delta"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	Arguments string          `json:"arguments"`
	Item      *outputItem     `json:"item"`
	Response  *wholeMessage   `json:"response"`
}

// wholeMessage is a response: as far as it is at its start, or at its end.
type wholeMessage struct {
	ID         string          `json:"id"`
	Object     string          `json:"object"`
	Status     string          `json:"status"`
	Output     []outputItem    `json:"output"`
	Usage      usage           `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// outputItem is an item of the output, as far as it is at its start, or at its end.
type outputItem struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	CallID    string       `json:"call_id"`
	Name      string       `json:"name"`
	Arguments string       `json:"arguments"`
	Phase     string       `json:"phase"`
	Content   []outputPart `json:"content"`
	Summary   []outputPart `json:"summary"`
	Encrypted string       `json:"encrypted_content"`
}

type outputPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// usage counts tokens; the input includes what comes from the cache, the output
// includes the reasoning.
type usage struct {
	Input        transport.Count `json:"input_tokens"`
	InputDetails struct {
		Cached transport.Count `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        transport.Count `json:"output_tokens"`
	OutputDetails struct {
		Reasoning transport.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON treats values of another form as absent.
func (u *usage) UnmarshalJSON(raw []byte) error {
	type plain usage
	_ = json.Unmarshal(raw, (*plain)(u))
	return nil
}

// The events that make up an answer.
const (
	itemAdded       = "response.output_item.added"
	itemDone        = "response.output_item.done"
	textDelta       = "response.output_text.delta"
	textDone        = "response.output_text.done"
	refusalDelta    = "response.refusal.delta"
	refusalDone     = "response.refusal.done"
	argumentsDelta  = "response.function_call_arguments.delta"
	argumentsDone   = "response.function_call_arguments.done"
	summaryDelta    = "response.reasoning_summary_text.delta"
	summaryDone     = "response.reasoning_summary_text.done"
	thoughtDelta    = "response.reasoning_text.delta"
	thoughtDone     = "response.reasoning_text.done"
	created         = "response.created"
	completed       = "response.completed"
	incomplete      = "response.incomplete"
	failed          = "response.failed"
	cancelled       = "response.cancelled"
	reportedFailure = "error"
)

var known = []string{
	itemAdded, itemDone, textDelta, textDone, refusalDelta, refusalDone, argumentsDelta, argumentsDone, summaryDelta, summaryDone,
	thoughtDelta, thoughtDone, created, completed, incomplete, failed, cancelled,
}

// UnmarshalJSON accepts any fields in events of unknown kinds: the API may add kinds
// at any time.
func (e *event) UnmarshalJSON(raw []byte) error {
	type plain event
	err := json.Unmarshal(raw, (*plain)(e))
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) && !slices.Contains(known, e.Type) {
		return nil
	}
	return err
}
