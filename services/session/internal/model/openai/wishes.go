package openai

import (
	"cmp"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
)

// wishes are the fields of a request that no turn has.
type wishes struct {
	Stop       []string        `json:"stop,omitempty"`
	Format     *responseFormat `json:"response_format,omitempty"`
	ToolChoice any             `json:"tool_choice,omitempty"`
	Parallel   *bool           `json:"parallel_tool_calls,omitempty"`
}

type responseFormat struct {
	Type   string        `json:"type"`
	Schema client.Format `json:"json_schema"`
}

type namedTool struct {
	Type     string   `json:"type"`
	Function toolName `json:"function"`
}

type toolName struct {
	Name string `json:"name"`
}

// wishesOf returns the fields of a request. The API refuses those about tools where it has none.
func wishesOf(r model.Request) wishes {
	w := wishes{Stop: r.Wishes.StopSequences}
	if f := r.Wishes.Format; len(f.Schema) > 0 {
		w.Format = &responseFormat{"json_schema", client.FormatOf(f)}
	}
	if len(r.Tools) > 0 {
		choice := r.Wishes.ToolChoice
		w.ToolChoice, w.Parallel = client.Choice(choice), client.Parallel(choice)
		if choice.Mode == model.ToolNamed {
			w.ToolChoice = namedTool{"function", toolName{choice.Name}}
		}
	}
	return w
}

// effort returns how much the model thinks: as configured, or else as the request asks for.
func (m *chat) effort(r model.Request) string {
	return cmp.Or(m.cfg.ReasoningEffort, client.Effort(r.Wishes.Effort))
}
