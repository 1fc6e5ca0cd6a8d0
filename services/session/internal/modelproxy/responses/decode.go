// Package responses reads requests of OpenAI's Responses API, and writes its answers. Nothing is stored between
// requests: a request brings its whole conversation.
package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// request is the part of a request that can be said to other models, and refused fields, because the answer would be
// another one without them. Other fields, such as metadata, are ignored.
type request struct {
	Model           string          `json:"model"`
	Input           items           `json:"input"`
	Instructions    string          `json:"instructions"`
	MaxOutputTokens int64           `json:"max_output_tokens"`
	Stream          bool            `json:"stream"`
	Tools           []tool          `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Parallel        *bool           `json:"parallel_tool_calls"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	Reasoning       reasoning       `json:"reasoning"`
	Text            text            `json:"text"`
	refused
}

type reasoning struct {
	Effort  string          `json:"effort"`
	Context json.RawMessage `json:"context"`
	Mode    json.RawMessage `json:"mode"`
}

type text struct {
	Format    *format         `json:"format"`
	Verbosity json.RawMessage `json:"verbosity"`
}

type format struct {
	Type string `json:"type"`
	dialog.Format
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
	refusedOfTool
}

// items is a text or items.
type items []item

// UnmarshalJSON implements json.Unmarshaler.
func (t *items) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*t = items{{Role: "user", Content: parts{{Type: "input_text", Text: s}}}}
		return err
	}
	return json.Unmarshal(raw, (*[]item)(t))
}

type item struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   parts  `json:"content"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Output    parts  `json:"output"`
	Encrypted string `json:"encrypted_content"`
	Summary   []part `json:"summary"`
	refusedOfItem
}

// parts is a text or parts.
type parts []part

// UnmarshalJSON implements json.Unmarshaler.
func (p *parts) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*p = parts{{Type: "input_text", Text: s}}
		return err
	}
	return json.Unmarshal(raw, (*[]part)(p))
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
	FileData string `json:"file_data"`
	Filename string `json:"filename"`
}

// Decode reads a request.
func Decode(body []byte) (*dialog.Request, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, unreadable(err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	c, err := r.conversation()
	if err != nil {
		return nil, err
	}
	out := &dialog.Request{Stream: r.Stream, Usage: true}
	out.Model, out.MaxOutputTokens = r.Model, r.MaxOutputTokens
	out.Temperature, out.TopP = r.Temperature, r.TopP
	out.System, out.Messages = c.Prompt(), c.Messages
	if out.Tools, err = r.tools(); err != nil {
		return nil, err
	}
	out.Thinking = dialog.Effort(r.Reasoning.Effort)
	out.Wishes, err = r.wishes()
	return out, err
}

func unreadable(err error) error {
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) && form.Field != "" {
		return dialog.Refuse(form.Field, "it cannot be %s", form.Value)
	}
	return dialog.Refuse("body", "it cannot be read: %v", err)
}

func (r *request) check() error {
	if r.MaxOutputTokens < 0 {
		return dialog.Refuse("max_output_tokens", "it must be at least 1")
	}
	if err := r.Reasoning.check(); err != nil {
		return err
	}
	if err := dialog.Refused("text", dialog.Lacking{Field: "verbosity", Value: r.Text.Verbosity, What: "the length of an answer", Same: `"medium"`}); err != nil {
		return err
	}
	return r.refused.check()
}

func (r *request) conversation() (*dialog.Conversation, error) {
	c := &dialog.Conversation{}
	c.Instruct(r.Instructions)
	for i, it := range r.Input {
		if err := it.add(c, fmt.Sprintf("input[%d]", i)); err != nil {
			return nil, err
		}
	}
	return c, c.End("input")
}

func (it item) add(c *dialog.Conversation, at string) error {
	if err := it.check(c, at); err != nil {
		return err
	}
	switch it.Type {
	case "", "message":
		return it.addMessage(c, at)
	case "function_call":
		return c.Call(at, it.CallID, it.Name, it.Arguments)
	case "function_call_output":
		pieces, err := it.Output.pieces(at + ".output")
		if err != nil {
			return err
		}
		return c.Result(at+".call_id", it.CallID, false, pieces)
	case "reasoning":
		var said []string
		for _, p := range it.Summary {
			said = append(said, p.Text)
		}
		if thought, ours := dialog.Thought(strings.Join(said, "\n"), it.Encrypted); ours {
			c.Add(sessionv1.Role_ROLE_ASSISTANT, thought)
		}
		return nil
	case "item_reference":
		return dialog.Unable(at, "an earlier item, which is not stored here,")
	}
	return dialog.Unable(at, fmt.Sprintf("an item of type %.50q", it.Type))
}

func (it item) addMessage(c *dialog.Conversation, at string) error {
	pieces, err := it.Content.pieces(at + ".content")
	if err != nil {
		return err
	}
	role := sessionv1.Role_ROLE_USER
	switch it.Role {
	case "system", "developer":
		for i, p := range pieces {
			if p.GetText() == nil {
				return dialog.Refuse(fmt.Sprintf("%s.content[%d]", at, i), "instructions are text")
			}
			c.Instruct(p.GetText().GetText())
		}
		return nil
	case "user":
	case "assistant":
		role = sessionv1.Role_ROLE_ASSISTANT
		if err := c.Answered(at); err != nil {
			return err
		}
	default:
		return dialog.Refuse(at+".role", "%.50q is not system, developer, user or assistant", it.Role)
	}
	for _, p := range pieces {
		c.Add(role, dialog.Block(p))
	}
	return nil
}

func (p parts) pieces(at string) (all []*commonv1.Content, _ error) {
	for i, one := range p {
		field := fmt.Sprintf("%s[%d]", at, i)
		var c *commonv1.Content
		var err error
		switch one.Type {
		case "input_text", "output_text", "text", "refusal":
			c = dialog.TextContent(one.Text + one.Refusal)
		case "input_image":
			c, err = dialog.DataURL(field+".image_url", one.ImageURL, "")
		case "input_file":
			c, err = dialog.DataURL(field+".file_data", one.FileData, one.Filename)
		default:
			err = dialog.Unable(field, fmt.Sprintf("a part of type %.50q", one.Type))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (r *request) tools() (all []model.Tool, _ error) {
	for i, t := range r.Tools {
		field := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type != "function":
			return nil, dialog.Unable(field, fmt.Sprintf("a tool of type %.50q", t.Type))
		case t.Name == "":
			return nil, dialog.Refuse(field, "a tool has a name")
		}
		if err := t.check(field); err != nil {
			return nil, err
		}
		all = append(all, model.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters, Strict: t.Strict})
	}
	return all, nil
}

func (r *request) wishes() (model.Wishes, error) {
	w := model.Wishes{Effort: r.Reasoning.Effort}
	if f := r.Text.Format; f != nil {
		switch {
		case f.Type == "text":
		case f.Type == "json_object":
			return w, dialog.Unable("text.format", "JSON without a schema (use json_schema)")
		case f.Type == "json_schema" && len(f.Schema) > 0:
			w.Format = model.Format(f.Format)
		default:
			return w, dialog.Refuse("text.format", "it is text, or json_schema with a schema")
		}
	}
	var err error
	w.ToolChoice, err = dialog.ReadToolChoice(r.ToolChoice)
	w.ToolChoice.Single = r.Parallel != nil && !*r.Parallel
	return w, err
}
