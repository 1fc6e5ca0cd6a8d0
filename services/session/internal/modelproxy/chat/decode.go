// Package chat reads requests of OpenAI's Chat Completions API, and writes its answers.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// request is the part of a request that can be said to other models, and refused fields, because the answer would be
// another one without them. Other fields, such as seed, are ignored.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	MaxTokens           int64           `json:"max_tokens"`
	MaxCompletionTokens int64           `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       streamOptions   `json:"stream_options"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Parallel            *bool           `json:"parallel_tool_calls"`
	Stop                texts           `json:"stop"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Effort              string          `json:"reasoning_effort"`
	ResponseFormat      *responseFormat `json:"response_format"`
	N                   int64           `json:"n"`
	refused
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

type message struct {
	Role       string     `json:"role"`
	Content    parts      `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Refusal    string     `json:"refusal"`
	refusedOfMessage
}

// parts is a text or parts.
type parts []part

// UnmarshalJSON implements json.Unmarshaler.
func (p *parts) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*p = parts{{Type: "text", Text: s}}
		return err
	}
	return json.Unmarshal(raw, (*[]part)(p))
}

// texts is a text or a list of texts.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*t = texts{s}
		return err
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
	Arguments   string          `json:"arguments"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type responseFormat struct {
	Type       string        `json:"type"`
	JSONSchema dialog.Format `json:"json_schema"`
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
	out := &dialog.Request{Stream: r.Stream, Usage: r.StreamOptions.Usage}
	out.Model, out.MaxOutputTokens = r.Model, max(r.MaxCompletionTokens, r.MaxTokens)
	out.Temperature, out.TopP = r.Temperature, r.TopP
	out.System, out.Messages = c.Prompt(), c.Messages
	if out.Tools, err = r.tools(); err != nil {
		return nil, err
	}
	out.Thinking = dialog.Effort(r.Effort)
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
	switch {
	case r.N > 1:
		return dialog.Unable("n", "more than one answer")
	case r.MaxTokens < 0 || r.MaxCompletionTokens < 0:
		return dialog.Refuse("max_completion_tokens", "it must be at least 1")
	}
	return r.refused.check()
}

func (r *request) conversation() (*dialog.Conversation, error) {
	c := &dialog.Conversation{}
	for i, m := range r.Messages {
		if err := m.add(c, fmt.Sprintf("messages[%d]", i)); err != nil {
			return nil, err
		}
	}
	return c, c.End("messages")
}

func (m message) add(c *dialog.Conversation, at string) error {
	if err := m.check(c, at); err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		for i, p := range m.Content {
			if p.Type != "text" {
				return dialog.Refuse(fmt.Sprintf("%s.content[%d]", at, i), "instructions are text")
			}
			c.Instruct(p.Text)
		}
		return nil
	case "user":
		pieces, err := m.Content.pieces(at)
		for _, p := range pieces {
			c.Add(sessionv1.Role_ROLE_USER, dialog.Block(p))
		}
		return err
	case "assistant":
		return m.addAssistant(c, at)
	case "tool":
		pieces, err := m.Content.pieces(at)
		if err != nil {
			return err
		}
		return c.Result(at+".tool_call_id", m.ToolCallID, false, pieces)
	}
	return dialog.Refuse(at+".role", "%.50q is not system, developer, user, assistant or tool", m.Role)
}

func (m message) addAssistant(c *dialog.Conversation, at string) error {
	if err := c.Answered(at); err != nil {
		return err
	}
	for i, p := range m.Content {
		if p.Type != "text" && p.Type != "refusal" {
			return dialog.Unable(fmt.Sprintf("%s.content[%d]", at, i), fmt.Sprintf("a part of type %.50q", p.Type))
		}
		if s := p.Text + p.Refusal; s != "" {
			c.Add(sessionv1.Role_ROLE_ASSISTANT, dialog.Text(s))
		}
	}
	if m.Refusal != "" {
		c.Add(sessionv1.Role_ROLE_ASSISTANT, dialog.Text(m.Refusal))
	}
	for i, t := range m.ToolCalls {
		field := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		if t.Type != "function" {
			return dialog.Unable(field, fmt.Sprintf("a call of type %.50q", t.Type))
		}
		if err := c.Call(field, t.ID, t.Function.Name, t.Function.Arguments); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) pieces(at string) (all []*commonv1.Content, _ error) {
	for i, one := range p {
		field := fmt.Sprintf("%s.content[%d]", at, i)
		var c *commonv1.Content
		var err error
		switch one.Type {
		case "text":
			c = dialog.TextContent(one.Text)
		case "image_url":
			c, err = dialog.DataURL(field+".image_url.url", one.ImageURL.URL, "")
		case "file":
			c, err = dialog.DataURL(field+".file.file_data", one.File.Data, one.File.Name)
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
		case t.Function.Name == "":
			return nil, dialog.Refuse(field, "a tool has a name")
		}
		all = append(all, model.Tool{Name: t.Function.Name, Description: t.Function.Description, InputSchema: t.Function.Parameters, Strict: t.Function.Strict})
	}
	return all, nil
}

func (r *request) wishes() (model.Wishes, error) {
	w := model.Wishes{StopSequences: r.Stop, Effort: r.Effort}
	if f := r.ResponseFormat; f != nil {
		switch {
		case f.Type == "text":
		case f.Type == "json_object":
			return w, dialog.Unable("response_format", "JSON without a schema (use json_schema)")
		case f.Type == "json_schema" && len(f.JSONSchema.Schema) > 0:
			w.Format = model.Format(f.JSONSchema)
		default:
			return w, dialog.Refuse("response_format", "it is text, or json_schema with a schema")
		}
	}
	var err error
	w.ToolChoice, err = dialog.ReadToolChoice(r.ToolChoice)
	w.ToolChoice.Single = r.Parallel != nil && !*r.Parallel
	return w, err
}
