package anthropic

import (
	"encoding/json"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// wishes are the fields of a request that no turn has.
type wishes struct {
	StopSequences []string      `json:"stop_sequences,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	Output        *outputConfig `json:"output_config,omitempty"`
}

type toolChoice struct {
	Type   string `json:"type"`
	Name   string `json:"name,omitempty"`
	Single bool   `json:"disable_parallel_tool_use,omitempty"`
}

type outputConfig struct {
	Effort string  `json:"effort,omitempty"`
	Format *format `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// efforts are OpenAI's words for how much a model thinks, in those of this API.
var efforts = map[string]string{"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}

// wishesOf returns the fields of a request. Only models that decide themselves how much they think know an effort.
func wishesOf(r model.Request, adaptive bool) wishes {
	w := r.Wishes
	out := wishes{StopSequences: w.StopSequences, ToolChoice: choice(r)}
	var o outputConfig
	if adaptive {
		o.Effort = efforts[w.Effort]
	}
	if len(w.Format.Schema) > 0 {
		o.Format = &format{"json_schema", described(w.Format)}
	}
	if o != (outputConfig{}) {
		out.Output = &o
	}
	return out
}

// described returns the schema of an answer with its description: this API has no other place for that. A schema with
// a description of its own keeps it.
func described(f model.Format) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if f.Description == "" || json.Unmarshal(f.Schema, &fields) != nil || fields == nil {
		return f.Schema
	}
	if _, own := fields["description"]; own {
		return f.Schema
	}
	text, err := json.Marshal(f.Description)
	if err != nil { // a text cannot fail
		return f.Schema
	}
	fields["description"] = text
	whole, err := json.Marshal(fields)
	if err != nil {
		return f.Schema
	}
	return whole
}

func choice(r model.Request) *toolChoice {
	c := r.Wishes.ToolChoice
	if len(r.Tools) == 0 || c == (model.ToolChoice{}) {
		return nil
	}
	switch c.Mode {
	case model.ToolNone:
		return &toolChoice{Type: "none"}
	case model.ToolAny:
		return &toolChoice{Type: "any", Single: c.Single}
	case model.ToolNamed:
		return &toolChoice{Type: "tool", Name: c.Name, Single: c.Single}
	default:
		return &toolChoice{Type: "auto", Single: c.Single}
	}
}
