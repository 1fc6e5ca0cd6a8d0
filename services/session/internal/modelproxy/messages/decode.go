// Package messages reads requests of Anthropic's Messages API, and writes its answers.
package messages

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
	Model         string        `json:"model"`
	MaxTokens     int64         `json:"max_tokens"`
	Stream        bool          `json:"stream"`
	Messages      []message     `json:"messages"`
	System        content       `json:"system"`
	Tools         []tool        `json:"tools"`
	ToolChoice    *toolChoice   `json:"tool_choice"`
	Thinking      *thinking     `json:"thinking"`
	StopSequences []string      `json:"stop_sequences"`
	Temperature   *float64      `json:"temperature"`
	TopP          *float64      `json:"top_p"`
	OutputConfig  *outputConfig `json:"output_config"`
	OutputFormat  *format       `json:"output_format"`
	refused
}

type message struct {
	Role    string          `json:"role"`
	Content content         `json:"content"`
	ClearAt json.RawMessage `json:"clear_at"`
	Output  json.RawMessage `json:"output_config"`
}

// content is a text or blocks.
type content []block

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		if *c = nil; s != "" {
			*c = content{{Type: "text", Text: s}}
		}
		return err
	}
	return json.Unmarshal(raw, (*[]block)(c))
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Source    source          `json:"source"`
	Title     string          `json:"title"`
	refusedOfBlock
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
	Deferred    bool            `json:"defer_loading"`
	// Examples are arguments that show how the tool is called.
	Examples []json.RawMessage `json:"input_examples"`
	Callers  json.RawMessage   `json:"allowed_callers"`
}

type toolChoice struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Single bool   `json:"disable_parallel_tool_use"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int64  `json:"budget_tokens"`
}

type outputConfig struct {
	Effort string          `json:"effort"`
	Format *format         `json:"format"`
	Budget json.RawMessage `json:"task_budget"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// Decode reads a request.
func Decode(body []byte) (*dialog.Request, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, unreadable(err)
	}
	if r.MaxTokens < 1 {
		return nil, dialog.Refuse("max_tokens", "it must be at least 1")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	out := &dialog.Request{Stream: r.Stream}
	out.Model, out.MaxOutputTokens = r.Model, r.MaxTokens
	out.Temperature, out.TopP = r.Temperature, r.TopP
	c, err := r.conversation()
	if err != nil {
		return nil, err
	}
	out.System, out.Messages = c.Prompt(), c.Messages
	if out.Tools, err = r.tools(); err != nil {
		return nil, err
	}
	if out.Wishes, err = r.wishes(); err != nil {
		return nil, err
	}
	out.Thinking, err = r.thinking()
	return out, err
}

func unreadable(err error) error {
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) && form.Field != "" {
		return dialog.Refuse(form.Field, "it cannot be %s", form.Value)
	}
	return dialog.Refuse("body", "it cannot be read: %v", err)
}

// billing begins a block that Claude Code puts first into the system prompt. It changes with each version, which would
// spoil other providers' caches.
const billing = "x-anthropic-billing-header"

func (r *request) conversation() (*dialog.Conversation, error) {
	c := &dialog.Conversation{}
	for i, b := range r.System {
		if b.Type != "text" {
			return nil, dialog.Refuse(fmt.Sprintf("system.%d", i), "a block of type %.50q cannot be in the system prompt", b.Type)
		}
		if !strings.HasPrefix(b.Text, billing) {
			c.Instruct(b.Text)
		}
	}
	for i, m := range r.Messages {
		at := fmt.Sprintf("messages.%d", i)
		var err error
		switch m.Role {
		case "system":
			err = addSystem(c, at, m)
		case "user":
			err = addUser(c, at, m.Content)
		case "assistant":
			err = addAssistant(c, at, m.Content)
		default:
			err = dialog.Refuse(at+".role", "%.50q is not user, assistant or system", m.Role)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, c.End("messages")
}

func addSystem(c *dialog.Conversation, at string, m message) error {
	if err := m.check(at); err != nil {
		return err
	}
	for i, b := range m.Content {
		if b.Type != "text" {
			return dialog.Refuse(fmt.Sprintf("%s.content.%d", at, i), "a block of type %.50q cannot be in the system prompt", b.Type)
		}
		c.Instruct(b.Text)
	}
	return nil
}

func addUser(c *dialog.Conversation, at string, blocks content) error {
	for i, b := range blocks {
		field := fmt.Sprintf("%s.content.%d", at, i)
		if err := b.check(field); err != nil {
			return err
		}
		if b.Type != "tool_result" {
			piece, err := b.piece(field)
			if err != nil {
				return err
			}
			c.Add(sessionv1.Role_ROLE_USER, dialog.Block(piece))
			continue
		}
		pieces, err := b.result(field)
		if err != nil {
			return err
		}
		if err := c.Result(field, b.ToolUseID, b.IsError, pieces); err != nil {
			return err
		}
	}
	return nil
}

// result returns the content of a tool's result.
func (b block) result(field string) (pieces []*commonv1.Content, _ error) {
	var inner content
	if len(b.Content) > 0 {
		if err := json.Unmarshal(b.Content, &inner); err != nil {
			return nil, dialog.Refuse(field+".content", "it is neither a text nor blocks")
		}
	}
	for i, b := range inner {
		at := fmt.Sprintf("%s.content.%d", field, i)
		if err := b.check(at); err != nil {
			return nil, err
		}
		piece, err := b.piece(at)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece)
	}
	return pieces, nil
}

// piece returns the content of a text, an image or a document.
func (b block) piece(field string) (*commonv1.Content, error) {
	switch b.Type {
	case "text":
		return dialog.TextContent(b.Text), nil
	case "image", "document":
		switch b.Source.Type {
		case "base64":
			return dialog.Media(field+".source", b.Source.MediaType, b.Title, b.Source.Data)
		case "text":
			return &commonv1.Content{Kind: &commonv1.Content_Document{Document: &commonv1.Media{
				MediaType: "text/plain", Title: b.Title, Data: []byte(b.Source.Data),
			}}}, nil
		}
		return nil, dialog.Unable(field+".source", fmt.Sprintf("a source of type %.50q (send the data itself, as base64)", b.Source.Type))
	}
	return nil, dialog.Unable(field, fmt.Sprintf("a block of type %.50q", b.Type))
}

func addAssistant(c *dialog.Conversation, at string, blocks content) error {
	if err := c.Answered(at); err != nil {
		return err
	}
	for i, b := range blocks {
		field := fmt.Sprintf("%s.content.%d", at, i)
		if err := b.check(field); err != nil {
			return err
		}
		switch b.Type {
		case "text":
			c.Add(sessionv1.Role_ROLE_ASSISTANT, dialog.Text(b.Text))
		case "thinking":
			if thought, ours := dialog.Thought(b.Thinking, b.Signature); ours {
				c.Add(sessionv1.Role_ROLE_ASSISTANT, thought)
			}
		case "redacted_thinking": // only the model that made it can read it
		case "tool_use":
			if err := c.Call(field, b.ID, b.Name, string(b.Input)); err != nil {
				return err
			}
		default:
			return dialog.Unable(field, fmt.Sprintf("a block of type %.50q", b.Type))
		}
	}
	return nil
}

func (r *request) tools() (all []model.Tool, _ error) {
	for i, t := range r.Tools {
		field := fmt.Sprintf("tools.%d", i)
		switch {
		case t.Deferred: // not shown to the model before it was searched for
			continue
		case t.Type != "" && t.Type != "custom":
			return nil, dialog.Unable(field, fmt.Sprintf("a tool of type %.50q, which its provider runs,", t.Type))
		case t.Name == "":
			return nil, dialog.Refuse(field, "a tool has a name")
		}
		if err := t.check(field); err != nil {
			return nil, err
		}
		all = append(all, model.Tool{Name: t.Name, Description: t.described(), InputSchema: t.InputSchema, Strict: t.Strict})
	}
	return all, nil
}

func (r *request) wishes() (model.Wishes, error) {
	w := model.Wishes{StopSequences: r.StopSequences}
	if o := r.OutputConfig; o != nil {
		if err := dialog.Refused("output_config", dialog.Lacking{Field: "task_budget", Value: o.Budget, What: "a budget of the whole task"}); err != nil {
			return w, err
		}
		w.Effort = o.Effort
		if o.Format != nil {
			r.OutputFormat = o.Format
		}
	}
	if f := r.OutputFormat; f != nil {
		if f.Type != "json_schema" || len(f.Schema) == 0 {
			return w, dialog.Refuse("output_config.format", "it has the type json_schema, and a schema")
		}
		w.Format.Schema = f.Schema
	}
	if t := r.ToolChoice; t != nil {
		modes := map[string]model.ToolMode{"auto": model.ToolAuto, "any": model.ToolAny, "tool": model.ToolNamed, "none": model.ToolNone}
		mode, ok := modes[t.Type]
		if !ok || mode == model.ToolNamed && t.Name == "" {
			return w, dialog.Refuse("tool_choice", "it is auto, any, none, or tool with a name")
		}
		w.ToolChoice = model.ToolChoice{Mode: mode, Name: t.Name, Single: t.Single}
	}
	return w, nil
}

func (r *request) thinking() (dialog.Thinking, error) {
	if r.Thinking == nil {
		return dialog.Thinking{}, nil
	}
	switch r.Thinking.Type {
	case "enabled":
		return dialog.Thinking{On: true, Tokens: r.Thinking.Budget}, nil
	case "adaptive":
		return dialog.Thinking{On: true}, nil
	case "disabled":
		return dialog.Thinking{}, nil
	}
	return dialog.Thinking{}, dialog.Refuse("thinking.type", "%.50q is not enabled, adaptive or disabled", r.Thinking.Type)
}
