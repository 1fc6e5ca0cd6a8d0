package responses

import (
	"errors"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
)

var errStop = errors.New("the Responses API has no stop sequences")

// wishes are the fields of a request that no turn has.
type wishes struct {
	Text       *answerText `json:"text,omitempty"`
	ToolChoice any         `json:"tool_choice,omitempty"`
	Parallel   *bool       `json:"parallel_tool_calls,omitempty"`
}

type answerText struct {
	Format textFormat `json:"format"`
}

type textFormat struct {
	Type string `json:"type"`
	client.Format
}

type namedTool struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// wishesOf returns the fields of a request. The API refuses those about tools where it has none.
func wishesOf(r model.Request) (w wishes) {
	if f := r.Wishes.Format; len(f.Schema) > 0 {
		w.Text = &answerText{textFormat{"json_schema", client.FormatOf(f)}}
	}
	if len(r.Tools) > 0 {
		choice := r.Wishes.ToolChoice
		w.ToolChoice, w.Parallel = client.Choice(choice), client.Parallel(choice)
		if choice.Mode == model.ToolNamed {
			w.ToolChoice = namedTool{"function", choice.Name}
		}
	}
	return w
}
