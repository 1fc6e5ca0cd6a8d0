package responses

import (
	"encoding/json"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// refused are fields of a request that have no place in other APIs.
type refused struct {
	AccessPrograms json.RawMessage `json:"access_programs"`
	Background     json.RawMessage `json:"background"`
	Context        json.RawMessage `json:"context_management"`
	Conversation   json.RawMessage `json:"conversation"`
	Image          json.RawMessage `json:"image"`
	Include        []string        `json:"include"`
	Moderation     json.RawMessage `json:"moderation"`
	Previous       json.RawMessage `json:"previous_response_id"`
	Prompt         json.RawMessage `json:"prompt"`
	TopLogprobs    json.RawMessage `json:"top_logprobs"`
	Truncation     json.RawMessage `json:"truncation"`
}

func (r refused) check() error {
	const (
		stored      = "an earlier answer, which is not stored here (send the whole input),"
		edit        = "an edit of the conversation by the provider"
		probability = "the probability of tokens"
	)
	if slices.Contains(r.Include, "message.output_text.logprobs") {
		return dialog.Unable("include", probability)
	}
	return dialog.Refused("", []dialog.Lacking{
		{Field: "access_programs", Value: r.AccessPrograms, What: "a program of the provider"},
		{Field: "background", Value: r.Background, What: "an answer in the background"},
		{Field: "context_management", Value: r.Context, What: edit},
		{Field: "conversation", Value: r.Conversation, What: stored},
		{Field: "image", Value: r.Image, What: "a setting for images"},
		{Field: "moderation", Value: r.Moderation, What: "a moderation by the provider"},
		{Field: "previous_response_id", Value: r.Previous, What: stored},
		{Field: "prompt", Value: r.Prompt, What: "a stored prompt"},
		{Field: "top_logprobs", Value: r.TopLogprobs, What: probability, Same: "0"},
		{Field: "truncation", Value: r.Truncation, What: edit, Same: `"disabled"`},
	}...)
}

func (r reasoning) check() error {
	return dialog.Refused("reasoning",
		dialog.Lacking{Field: "context", Value: r.Context, What: "a choice of the earlier reasoning", Same: `"auto"`},
		dialog.Lacking{Field: "mode", Value: r.Mode, What: "a mode of reasoning", Same: `"standard"`})
}

// refusedOfTool are fields of a tool that have no place in other APIs.
type refusedOfTool struct {
	Async   json.RawMessage `json:"async"`
	Callers json.RawMessage `json:"allowed_callers"`
	Defer   json.RawMessage `json:"defer_loading"`
	Output  json.RawMessage `json:"output_schema"`
}

func (t refusedOfTool) check(at string) error {
	return dialog.Refused(at,
		dialog.Lacking{Field: "allowed_callers", Value: t.Callers, What: "a call by code", Same: `["direct"]`},
		dialog.Lacking{Field: "async", Value: t.Async, What: "a call in the background"},
		dialog.Lacking{Field: "defer_loading", Value: t.Defer, What: "a tool that the provider looks up"},
		dialog.Lacking{Field: "output_schema", Value: t.Output, What: "a schema of the result"})
}

// refusedOfItem are fields of an item that have no place in other APIs.
type refusedOfItem struct {
	Async     json.RawMessage `json:"async"`
	Caller    json.RawMessage `json:"caller"`
	Namespace json.RawMessage `json:"namespace"`
}

// check refuses what other APIs have no place for. The result of a call may name its tool.
func (it item) check(c *dialog.Conversation, at string) error {
	var name dialog.Lacking
	if it.Type == "function_call_output" && it.Name != "" && it.Name != c.Tool(it.CallID) {
		name = dialog.Lacking{Field: "name", Value: dialog.JSON(it.Name), What: "a name that is not that of the called tool"}
	}
	return dialog.Refused(at, name,
		dialog.Lacking{Field: "async", Value: it.Async, What: "a call in the background"},
		dialog.Lacking{Field: "caller", Value: it.Caller, What: "a call by code", Same: `{"type":"direct"}`},
		dialog.Lacking{Field: "namespace", Value: it.Namespace, What: "a namespace of tools"})
}
