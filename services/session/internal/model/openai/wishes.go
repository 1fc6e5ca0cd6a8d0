package openai

import (
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
)

// maxEffort is the word for the most thinking in Anthropic's API, which this one does not have.
const maxEffort = "max"

// extra returns the fields of a request that no turn has, and the one that makes it a stream.
func (m *chat) extra(r model.Request) map[string]any {
	w := r.Wishes
	f := map[string]any{"stream": true}
	if len(w.StopSequences) > 0 {
		f["stop"] = w.StopSequences
	}
	if len(w.Format.Schema) > 0 {
		f["response_format"] = map[string]any{"type": "json_schema", "json_schema": client.Format(w.Format)}
	}
	if w.Effort != "" && m.cfg.ReasoningEffort == "" {
		f["reasoning_effort"] = w.Effort
		if w.Effort == maxEffort {
			f["reasoning_effort"] = "high"
		}
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
		f["tool_choice"] = map[string]any{"type": "function", "function": map[string]string{"name": w.ToolChoice.Name}}
	case model.ToolAuto:
	}
	if w.ToolChoice.Single {
		f["parallel_tool_calls"] = false
	}
	return f
}
