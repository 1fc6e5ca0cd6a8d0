package responses

import (
	"errors"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
)

var errStop = errors.New("the Responses API has no stop sequences")

// extra returns the fields of a request that no turn has, and the one that makes it a stream.
func (m *Model) extra(r model.Request) map[string]any {
	w := r.Wishes
	f := map[string]any{"stream": true}
	if len(w.Format.Schema) > 0 {
		form := client.Format(w.Format)
		form["type"] = "json_schema"
		f["text"] = map[string]any{"format": form}
	}
	if len(r.Tools) == 0 {
		return f
	}
	switch w.ToolChoice.Mode {
	case model.ToolNone:
		f["tool_choice"] = "none"
	case model.ToolAny:
		f["tool_choice"] = "required"
	case model.ToolNamed:
		f["tool_choice"] = map[string]string{"type": "function", "name": w.ToolChoice.Name}
	case model.ToolAuto:
	}
	if w.ToolChoice.Single {
		f["parallel_tool_calls"] = false
	}
	return f
}

// effort returns how much the model thinks: as configured, or else as the request asks for.
func (m *Model) effort(r model.Request) string {
	switch {
	case m.cfg.ReasoningEffort != "":
		return m.cfg.ReasoningEffort
	case r.Wishes.Effort == "max": // of Anthropic's API
		return "high"
	}
	return r.Wishes.Effort
}
