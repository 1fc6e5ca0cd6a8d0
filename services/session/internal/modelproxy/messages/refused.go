package messages

import (
	"encoding/json"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// refused are fields of a request that have no place in other APIs.
type refused struct {
	Compaction   json.RawMessage `json:"compaction"`
	Container    json.RawMessage `json:"container"`
	Context      contextEdits    `json:"context_management"`
	Fallbacks    json.RawMessage `json:"fallbacks"`
	InferenceGeo json.RawMessage `json:"inference_geo"`
	MCPServers   json.RawMessage `json:"mcp_servers"`
	Thread       json.RawMessage `json:"thread"`
	TopK         json.RawMessage `json:"top_k"`
}

type contextEdits struct {
	Edits []struct {
		Type string `json:"type"`
	} `json:"edits"`
}

// clearThinking begins the type of an edit that drops earlier thinking. Claude Code sends it with each request.
const clearThinking = "clear_thinking"

func (r refused) check() error {
	for _, e := range r.Context.Edits {
		if !strings.HasPrefix(e.Type, clearThinking) {
			return dialog.Unable("context_management.edits", "an edit of the conversation by the provider")
		}
	}
	return dialog.Refused("", []dialog.Lacking{
		{Field: "compaction", Value: r.Compaction, What: "a summary of the conversation in place of an answer"},
		{Field: "container", Value: r.Container, What: "a container"},
		{Field: "fallbacks", Value: r.Fallbacks, What: "another model of the provider", Same: `"default"`},
		{Field: "inference_geo", Value: r.InferenceGeo, What: "the place where the model runs"},
		{Field: "mcp_servers", Value: r.MCPServers, What: "a server of tools"},
		{Field: "thread", Value: r.Thread, What: "a conversation that the provider stores"},
		{Field: "top_k", Value: r.TopK, What: "the number of tokens to choose from"},
	}...)
}

func (m message) check(at string) error {
	return dialog.Refused(at,
		dialog.Lacking{Field: "clear_at", Value: m.ClearAt, What: "an edit of the conversation by the provider"},
		dialog.Lacking{Field: "output_config", Value: m.Output, What: "a change of the form in mid-conversation"})
}

// refusedOfBlock are fields of a block that have no place in other APIs.
type refusedOfBlock struct {
	Caller          json.RawMessage `json:"caller"`
	Citations       json.RawMessage `json:"citations"`
	Context         json.RawMessage `json:"context"`
	ToolsetName     json.RawMessage `json:"toolset_name"`
	Transformations json.RawMessage `json:"transformations"`
}

func (b block) check(at string) error {
	cited := dialog.Lacking{Field: "citations", Value: b.Citations, What: "an answer with citations", Same: `{"enabled":false}`}
	if b.Type == "text" { // the citations of an earlier answer, whose text stays
		cited.Value = nil
	}
	return dialog.Refused(at, cited,
		dialog.Lacking{Field: "caller", Value: b.Caller, What: "a call by code", Same: `{"type":"direct"}`},
		dialog.Lacking{Field: "context", Value: b.Context, What: "the context of a document (send it as text)"},
		dialog.Lacking{Field: "toolset_name", Value: b.ToolsetName, What: "a set of tools"},
		dialog.Lacking{Field: "transformations", Value: b.Transformations, What: "a change of the image by the provider"})
}

func (t tool) check(at string) error {
	return dialog.Refused(at, dialog.Lacking{Field: "allowed_callers", Value: t.Callers, What: "a call by code", Same: `["direct"]`})
}

// described returns the description with the examples, which have no place of their own in other APIs.
func (t tool) described() string {
	if len(t.Examples) == 0 {
		return t.Description
	}
	var b strings.Builder
	b.WriteString(t.Description)
	b.WriteString("\n\nExamples of arguments:")
	for _, e := range t.Examples {
		b.WriteByte('\n')
		b.Write(e)
	}
	return strings.TrimSpace(b.String())
}
