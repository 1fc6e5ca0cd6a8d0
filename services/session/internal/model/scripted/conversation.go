package scripted

import (
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// conversation is the position of a request in its script. It follows from the
// request alone, so a script continues after a restart, on any replica.
type conversation struct {
	turn       int // turns of the person so far, from 1
	step       int // answers of the model in this turn, this one included
	userText   string
	lastResult string
	// lastOperation is the first operation in the last result of the turn that
	// names one.
	lastOperation string
	bytes         int // length of all texts, for estimates of usage
	tools         []string
}

// read finds the position of a request.
func read(r model.Request) conversation {
	c := conversation{step: 1, bytes: len(r.System)}
	for _, m := range r.Messages {
		for _, b := range m.GetBlocks() {
			c.bytes += blockBytes(b)
		}
		if m.GetRole() == sessionv1.Role_ROLE_ASSISTANT {
			c.step++
			continue
		}
		c.readUser(m)
	}
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Name)
		c.bytes += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return c
}

// reminder begins a text that a runtime adds to the conversation. No person has said it.
const reminder = "<system-reminder>"

func (c *conversation) readUser(m *sessionv1.Message) {
	var said []string
	results, reminded := false, false
	for _, b := range m.GetBlocks() {
		if res := b.GetToolResult(); res != nil {
			c.lastResult = text(res.GetContent())
			if name := operation.FindString(c.lastResult); name != "" {
				c.lastOperation = name
			}
			results = true
		}
		switch t := b.GetContent().GetText(); {
		case t == nil:
		case strings.HasPrefix(t.GetText(), reminder):
			reminded = true
		default:
			said = append(said, t.GetText())
		}
	}
	if reminded && len(said) == 0 {
		return
	}
	if !results { // text beside results is a note of the session, not a person's
		c.turn++
		c.step = 1
		c.lastOperation = ""
		c.userText = strings.Join(said, "\n")
	}
}

// offers reports whether the request offers all the tools.
func (c conversation) offers(tools []string) bool {
	for _, t := range tools {
		if !slices.Contains(c.tools, t) {
			return false
		}
	}
	return true
}

// pick returns the first turn of the scenario that fits, or nil.
func (s *Scenario) pick(c conversation) *Turn {
	for i := range s.Turns {
		t := &s.Turns[i]
		if (t.Turn == 0 || t.Turn == c.turn) && t.when.MatchString(c.userText) && c.offers(t.Tools) {
			return t
		}
	}
	return s.Fallback
}

func text(contents []*commonv1.Content) string {
	var out []string
	for _, c := range contents {
		if t := c.GetText(); t != nil {
			out = append(out, t.GetText())
		}
	}
	return strings.Join(out, "\n")
}

func blockBytes(b *sessionv1.Block) int {
	switch k := b.GetKind().(type) {
	case *sessionv1.Block_Content:
		return len(k.Content.GetText().GetText())
	case *sessionv1.Block_Thinking:
		return len(k.Thinking.GetText())
	case *sessionv1.Block_ToolUse:
		return len(k.ToolUse.GetTool()) + len(k.ToolUse.GetArgumentsJson())
	case *sessionv1.Block_ToolResult:
		return len(text(k.ToolResult.GetContent()))
	}
	return 0
}
