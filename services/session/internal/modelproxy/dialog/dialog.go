// Package dialog is what the wires of the model proxy have in common: requests and answers in the terms of package
// model, the blocks that they are made of, and what each wire refuses in the same words.
package dialog

import (
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Request is a client's request. Its Model is the name that the client gives.
type Request struct {
	model.Request
	Stream bool
	// Usage says that a stream ends with the usage, where clients ask for that.
	Usage bool
	// Thinking is whether and how much the model thinks.
	Thinking Thinking
}

// Thinking is whether a model thinks: as much as its limits allow, unless Tokens is less.
type Thinking struct {
	On     bool
	Tokens int64
}

// Error is what is wrong with a request: the field, and why.
type Error struct{ Field, Text string }

// Error returns the text for the client.
func (e *Error) Error() string { return e.Field + ": " + e.Text }

// Refuse returns the error of a field.
func Refuse(field, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...)}
}

// Unable returns the error of a field that cannot be said to a model of another vendor.
func Unable(field, what string) error {
	return Refuse(field, "%s cannot be translated for the model of another provider; leave it out, or choose a model whose provider has this API", what)
}

// Conversation collects messages.
type Conversation struct {
	System   []string
	Messages []*sessionv1.Message

	calls   map[string]bool   // ids of calls, with whether they have a result
	tools   map[string]string // names of the called tools, by the ids of calls
	pending []string          // calls of the last message of the assistant
}

// Add adds a block of a speaker. Blocks of one speaker in a row are one message.
func (c *Conversation) Add(role sessionv1.Role, b *sessionv1.Block) {
	if n := len(c.Messages); n > 0 && c.Messages[n-1].Role == role {
		c.Messages[n-1].Blocks = append(c.Messages[n-1].Blocks, b)
		return
	}
	c.Messages = append(c.Messages, &sessionv1.Message{Role: role, Blocks: []*sessionv1.Block{b}})
}

// Instruct adds words of the developer: to the system prompt at the beginning, and as a marked text of the user later,
// for a model's request has one system prompt.
func (c *Conversation) Instruct(text string) {
	switch {
	case strings.TrimSpace(text) == "":
	case len(c.Messages) == 0:
		c.System = append(c.System, text)
	default:
		c.Add(sessionv1.Role_ROLE_USER, Text("<system>\n"+text+"\n</system>"))
	}
}

// Call adds a call of the assistant.
func (c *Conversation) Call(field, id, name, arguments string) error {
	if id == "" || name == "" {
		return Refuse(field, "a call has an id and a name")
	}
	if _, twice := c.calls[id]; twice {
		return Refuse(field, "the id %.100q was used for another call", id)
	}
	if c.calls == nil {
		c.calls, c.tools = map[string]bool{}, map[string]string{}
	}
	c.calls[id], c.tools[id] = false, name
	c.pending = append(c.pending, id)
	c.Add(sessionv1.Role_ROLE_ASSISTANT, &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{
		CallId: id, ProviderCallId: id, Tool: name, ArgumentsJson: arguments,
	}}})
	return nil
}

// Tool returns the name of the tool that a call is for; empty without such a call.
func (c *Conversation) Tool(id string) string { return c.tools[id] }

// Result adds the result of a call.
func (c *Conversation) Result(field, id string, failed bool, content []*commonv1.Content) error {
	done, ok := c.calls[id]
	if !ok {
		return Refuse(field, "there is no call %.100q before this result", id)
	}
	if done {
		return Refuse(field, "the call %.100q has a result already", id)
	}
	c.calls[id] = true
	outcome := sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	if failed {
		outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
	}
	c.Add(sessionv1.Role_ROLE_USER, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{
		CallId: id, Outcome: outcome, Content: content,
	}}})
	return nil
}

// Answered checks that every call so far has its result. It is called before the assistant speaks again, and at the
// end.
func (c *Conversation) Answered(field string) error {
	for _, id := range c.pending {
		if !c.calls[id] {
			return Refuse(field, "the call %.100q has no result; send one after the message with the call", id)
		}
	}
	c.pending = c.pending[:0]
	return nil
}

// End checks that the conversation can be answered.
func (c *Conversation) End(field string) error {
	if err := c.Answered(field); err != nil {
		return err
	}
	n := len(c.Messages)
	switch {
	case n == 0:
		return Refuse(field, "there must be a message")
	case c.Messages[n-1].Role != sessionv1.Role_ROLE_USER:
		return Unable(field, "an answer that the client has begun (the last message is the assistant's)")
	}
	return nil
}

// Prompt is the system prompt.
func (c *Conversation) Prompt() string { return strings.Join(c.System, "\n\n") }
