package dialog

import (
	"encoding/json"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// efforts are the bounds of thinking for OpenAI's words, in tokens.
var efforts = map[string]int64{"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}

// Effort returns whether a model thinks at one of OpenAI's efforts.
func Effort(effort string) Thinking {
	n, ok := efforts[effort]
	return Thinking{On: ok, Tokens: n}
}

// Format is the form of an answer that is JSON, in both of OpenAI's APIs.
type Format struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict"`
}

// ReadToolChoice reads the tool choice of both of OpenAI's APIs.
func ReadToolChoice(raw json.RawMessage) (model.ToolChoice, error) {
	var word string
	var choice struct {
		Type     string `json:"type"`
		Name     string `json:"name"` // of the Responses API
		Function struct {
			Name string `json:"name"`
		} `json:"function"` // of the Chat Completions API
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return model.ToolChoice{}, nil
	case json.Unmarshal(raw, &word) == nil:
		modes := map[string]model.ToolMode{"auto": model.ToolAuto, "none": model.ToolNone, "required": model.ToolAny}
		if mode, ok := modes[word]; ok {
			return model.ToolChoice{Mode: mode}, nil
		}
	case json.Unmarshal(raw, &choice) == nil && choice.Type == "function" && choice.Name+choice.Function.Name != "":
		return model.ToolChoice{Mode: model.ToolNamed, Name: choice.Name + choice.Function.Name}, nil
	}
	return model.ToolChoice{}, Refuse("tool_choice", "it is auto, none, required, or a function with a name")
}
