package chat

import (
	"encoding/json"

	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// refused are fields of a request that have no place in other APIs.
type refused struct {
	Audio            json.RawMessage `json:"audio"`
	FrequencyPenalty json.RawMessage `json:"frequency_penalty"`
	FunctionCall     json.RawMessage `json:"function_call"`
	Functions        json.RawMessage `json:"functions"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	Logprobs         json.RawMessage `json:"logprobs"`
	Modalities       json.RawMessage `json:"modalities"`
	Moderation       json.RawMessage `json:"moderation"`
	PresencePenalty  json.RawMessage `json:"presence_penalty"`
	TopLogprobs      json.RawMessage `json:"top_logprobs"`
	Verbosity        json.RawMessage `json:"verbosity"`
	WebSearch        json.RawMessage `json:"web_search_options"`
}

func (r refused) check() error {
	const (
		old         = "the form of tools before 2023-11 (use tools)"
		probability = "the probability of tokens"
		penalty     = "a penalty for tokens"
	)
	if len(r.WebSearch) > 0 && string(r.WebSearch) != "null" { // an empty object asks for a search, too
		return dialog.Unable("web_search_options", "a search that the provider makes")
	}
	return dialog.Refused("", []dialog.Lacking{
		{Field: "audio", Value: r.Audio, What: "audio"},
		{Field: "frequency_penalty", Value: r.FrequencyPenalty, What: penalty, Same: "0"},
		{Field: "function_call", Value: r.FunctionCall, What: old},
		{Field: "functions", Value: r.Functions, What: old},
		{Field: "logit_bias", Value: r.LogitBias, What: "a bias for tokens"},
		{Field: "logprobs", Value: r.Logprobs, What: probability},
		{Field: "modalities", Value: r.Modalities, What: "an answer that is not text", Same: `["text"]`},
		{Field: "moderation", Value: r.Moderation, What: "a moderation by the provider"},
		{Field: "presence_penalty", Value: r.PresencePenalty, What: penalty, Same: "0"},
		{Field: "top_logprobs", Value: r.TopLogprobs, What: probability, Same: "0"},
		{Field: "verbosity", Value: r.Verbosity, What: "the length of an answer", Same: `"medium"`},
	}...)
}

// refusedOfMessage are fields of a message that have no place in other APIs.
type refusedOfMessage struct {
	Name         json.RawMessage `json:"name"`
	Audio        json.RawMessage `json:"audio"`
	FunctionCall json.RawMessage `json:"function_call"`
}

// check refuses the name of a speaker. Older clients name the tool in its result, which the call says as well.
func (m message) check(c *dialog.Conversation, at string) error {
	name := dialog.Lacking{Field: "name", Value: m.Name, What: "the name of a speaker"}
	if m.Role == "tool" {
		name.What = "a name that is not that of the called tool"
		name.Same = string(dialog.JSON(c.Tool(m.ToolCallID)))
	}
	return dialog.Refused(at, name,
		dialog.Lacking{Field: "audio", Value: m.Audio, What: "audio"},
		dialog.Lacking{Field: "function_call", Value: m.FunctionCall, What: "the form of calls before 2023-11 (use tool_calls)"})
}
