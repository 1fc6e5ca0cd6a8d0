// Package prompt puts a conversation into the order that the APIs of models require, and writes what they share in JSON.
package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Conversation is a request's conversation in the form that the APIs require:
// it begins with a user, the roles alternate, no text is empty, tool results
// come first in their message, and ids of calls are unique.
type Conversation struct {
	System   string
	Messages []Message
	ids      map[string]string // by our call id
}

// Message is a message of a Conversation.
type Message struct {
	Role   sessionv1.Role
	Blocks []*sessionv1.Block
}

// New orders the conversation of r. It keeps thinking for which own
// returns true.
func New(r model.Request, own func(*sessionv1.Block) bool) *Conversation {
	c := &Conversation{System: r.System, Messages: make([]Message, 0, len(r.Messages)), ids: map[string]string{}}
	var greeting []string
	for _, m := range r.Messages {
		blocks := usable(m, own)
		if !slices.ContainsFunc(blocks, speaks) { // the APIs refuse thinking alone
			continue
		}
		if len(c.Messages) == 0 && m.GetRole() == sessionv1.Role_ROLE_ASSISTANT {
			greeting = append(greeting, texts(blocks)...)
			continue
		}
		if last := len(c.Messages) - 1; last >= 0 && c.Messages[last].Role == m.GetRole() {
			c.Messages[last].Blocks = append(c.Messages[last].Blocks, blocks...)
			continue
		}
		c.Messages = append(c.Messages, Message{m.GetRole(), blocks})
	}
	if len(greeting) > 0 {
		c.System = strings.TrimSpace(c.System + "\n\nYou have already greeted the user with these words: " + strings.Join(greeting, " "))
	}
	used := map[string]bool{}
	for i := range c.Messages {
		c.Messages[i].Blocks = resultsFirst(c.Messages[i].Blocks)
		c.name(c.Messages[i].Blocks, used)
	}
	return c
}

// usable returns the blocks that may be sent. Often they are those of m itself,
// so they must not be appended to in place.
func usable(m *sessionv1.Message, own func(*sessionv1.Block) bool) []*sessionv1.Block {
	all := m.GetBlocks()
	unusable := func(b *sessionv1.Block) bool { return !sendable(b, own) }
	at := slices.IndexFunc(all, unusable)
	if at < 0 {
		return slices.Clip(all)
	}
	return append(all[:at:at], slices.DeleteFunc(slices.Clone(all[at:]), unusable)...)
}

func sendable(b *sessionv1.Block, own func(*sessionv1.Block) bool) bool {
	switch k := b.GetKind().(type) {
	case *sessionv1.Block_Content:
		t := k.Content.GetText()
		return k.Content.GetKind() != nil && (t == nil || !Blank(t.GetText()))
	case *sessionv1.Block_Thinking:
		return own(b)
	}
	return b.GetKind() != nil
}

// speaks reports whether a block is more than thinking.
func speaks(b *sessionv1.Block) bool { return b.GetThinking() == nil }

func texts(blocks []*sessionv1.Block) []string {
	var out []string
	for _, b := range blocks {
		if t := b.GetContent().GetText(); t != nil {
			out = append(out, t.GetText())
		}
	}
	return out
}

// resultsFirst moves tool results before all other blocks, in their order.
func resultsFirst(blocks []*sessionv1.Block) []*sessionv1.Block {
	other := func(b *sessionv1.Block) bool { return b.GetToolResult() == nil }
	first := slices.IndexFunc(blocks, other)
	if first < 0 || !slices.ContainsFunc(blocks[first:], func(b *sessionv1.Block) bool { return !other(b) }) {
		return blocks
	}
	var results, others []*sessionv1.Block
	for _, b := range blocks {
		if other(b) {
			others = append(others, b)
		} else {
			results = append(results, b)
		}
	}
	return append(results, others...)
}

var (
	goodID  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	badRune = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// name sets the ids of the calls in blocks: the provider's own id if it can be
// sent and was not sent before, otherwise one made from ours.
func (c *Conversation) name(blocks []*sessionv1.Block, used map[string]bool) {
	for _, b := range blocks {
		u := b.GetToolUse()
		if u == nil {
			continue
		}
		id := u.GetProviderCallId()
		if !goodID.MatchString(id) || used[id] {
			id = made(u.GetCallId(), used)
		}
		used[id] = true
		c.ids[u.GetCallId()] = id
	}
}

// maxMade bounds the part of an id that is our own: an id has at most 40 bytes.
const maxMade = 31

// made returns an id that the APIs accept and that was not sent before.
func made(callID string, used map[string]bool) string {
	base := badRune.ReplaceAllString(callID, "_")
	base = "call_" + base[max(0, len(base)-maxMade):]
	id := base
	for n := 2; used[id]; n++ {
		id = fmt.Sprintf("%s_%d", base, n)
	}
	return id
}

// ID returns the id under which the provider knows a call.
func (c *Conversation) ID(callID string) string {
	if id, ok := c.ids[callID]; ok {
		return id
	}
	return "call_" + badRune.ReplaceAllString(callID, "_")
}

// LoopStart returns the index of the first message of the current tool loop, which
// follows the last message of the user without results.
func (c *Conversation) LoopStart() int {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		msg := c.Messages[i]
		if msg.Role != sessionv1.Role_ROLE_ASSISTANT && msg.Blocks[0].GetToolResult() == nil {
			return i + 1
		}
	}
	return 0
}

// Arguments returns arguments that are always a JSON object: invalid ones of a
// model are returned as text inside an object.
func Arguments(s string) json.RawMessage {
	trimmed := strings.TrimSpace(s)
	if trimmed == "" {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' {
		var buf bytes.Buffer
		buf.Grow(len(s))
		if json.Compact(&buf, []byte(s)) == nil {
			return buf.Bytes()
		}
	}
	b, err := json.Marshal(map[string]string{"_invalid_arguments": s})
	if err != nil { // cannot happen: strings can always be marshaled
		return json.RawMessage("{}")
	}
	return b
}

// IsError reports whether the model gets a result as an error.
func IsError(o sessionv1.ToolOutcome) bool { return o != sessionv1.ToolOutcome_TOOL_OUTCOME_OK }

// Explain returns the sentence before the content of a result, so that a model
// can tell a refusal, an expiry and a failure of ours apart.
func Explain(o sessionv1.ToolOutcome) string {
	switch o {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED:
		return "The call was not made: the permission profile does not allow it."
	case sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED:
		return "The call was not made: a person refused it."
	case sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED:
		return "The call was not made: it was not approved in time."
	case sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED:
		return "The call was interrupted before it ended."
	case sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		return "It is not known how the call ended: it may have taken effect. Check before repeating it."
	case sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE:
		return "The call was not made because of a failure of the platform; it had no effect."
	}
	return ""
}

// Blank reports whether a text has nothing to read; the APIs refuse such texts.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// IsText reports whether a document can be sent as text.
func IsText(d *commonv1.Media) bool {
	t := media.Canonical(d.GetMediaType())
	return (strings.HasPrefix(t, "text/") || t == "application/json" || t == "application/xml") && utf8.Valid(d.GetData()) && !Blank(string(d.GetData()))
}

// DocumentText returns a document's text after its title, or else its description.
func DocumentText(d *commonv1.Media) string {
	if !IsText(d) {
		return Describe(d)
	}
	return strings.TrimSpace(d.GetTitle() + "\n" + string(d.GetData()))
}

// Describe returns a text for a document that an API does not take.
func Describe(d *commonv1.Media) string {
	name := d.GetTitle()
	if name == "" {
		name = "untitled"
	}
	return fmt.Sprintf("[a document that cannot be shown here: %s, %s, %d bytes]", name, d.GetMediaType(), len(d.GetData()))
}
