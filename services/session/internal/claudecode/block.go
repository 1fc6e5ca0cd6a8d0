package claudecode

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// block is a block of a message as the CLI has it: a block of the Messages API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   anyBlock        `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

const (
	// maxText bounds a text that the CLI gets whole. It gets a sign for a longer one, as for an image.
	maxText = 64 << 10
	// maxOutline bounds what it gets of the result of a call, of which the model gets all.
	maxOutline = 16 << 10
)

// signed begins all signs.
const signed = "[[fairlead "

func text(s string) block { return block{Type: "text", Text: s} }

// sign stands for a block of the conversation that the CLI does not get. The session puts the block
// in its place in the request to the model.
func sign(m *sessionv1.Message, i int) string {
	return fmt.Sprintf(signed+"%s %d]]", state.LastSegment(m.GetName()), i)
}

var notInIDs = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// toolUseID returns the CLI's id of a call.
func toolUseID(callID string) string { return "toolu_" + notInIDs.ReplaceAllString(callID, "_") }

// thinkingID returns the signature of a block of thinking in the CLI.
func thinkingID(turn string, step int32, i int) string {
	return fmt.Sprintf("fairlead_%s_%d_%d", notInIDs.ReplaceAllString(turn, "_"), step, i)
}

// person returns what the CLI gets of a block of a person's message.
func person(m *sessionv1.Message, i int) (block, bool) {
	t := m.GetBlocks()[i].GetContent().GetText()
	switch {
	case t == nil || len(t.GetText()) > maxText || looksLikeTheCLI(t.GetText()):
		return text(sign(m, i)), m.GetBlocks()[i].GetContent() != nil
	case prompt.Blank(t.GetText()):
		return block{}, false
	default:
		return text(t.GetText()), true
	}
}

// looksLikeTheCLI reports whether what a person says is what the CLI says itself, or what the session says to it. It
// would not be found again in the request to the model.
func looksLikeTheCLI(s string) bool {
	s = strings.TrimSpace(s)
	return s == continued || s == silent || strings.HasPrefix(s, reminder) || strings.HasPrefix(s, signed)
}

// outline returns what the CLI gets of a call's result.
func outline(r *sessionv1.ToolResult, more ...block) result {
	var b strings.Builder
	b.WriteString(prompt.Explain(r.GetOutcome()))
	for _, c := range r.GetContent() {
		if t := c.GetText(); t != nil {
			b.WriteString(t.GetText())
		} else {
			b.WriteString("[media]")
		}
	}
	s := b.String()
	if len(s) > maxOutline {
		s = strings.ToValidUTF8(s[:maxOutline], "") + " [shortened]"
	}
	if prompt.Blank(s) {
		s = "(empty)"
	}
	return result{Content: append([]block{text(s)}, more...), IsError: prompt.IsError(r.GetOutcome())}
}

// assistant returns what the CLI gets of an answer of the model. turn and step are those of the answer,
// and name returns the CLI's id of its n-th call.
func assistant(blocks []*sessionv1.Block, turn string, step int32, name func(n int, u *sessionv1.ToolUse) string) []block {
	var out []block
	calls := 0
	for i, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Thinking:
			// The space: the CLI may leave out what is empty.
			out = append(out, block{Type: "thinking", Thinking: k.Thinking.GetText() + " ", Signature: thinkingID(turn, step, i)})
		case *sessionv1.Block_ToolUse:
			input := json.RawMessage("{}")
			if a := k.ToolUse.GetArgumentsJson(); len(a) <= maxText && json.Valid([]byte(a)) && strings.HasPrefix(strings.TrimSpace(a), "{") {
				input = json.RawMessage(a)
			}
			out = append(out, block{Type: "tool_use", ID: name(calls, k.ToolUse), Name: toolPrefix + notInIDs.ReplaceAllString(k.ToolUse.GetTool(), "_"), Input: input})
			calls++
		case *sessionv1.Block_Content:
			if t := k.Content.GetText().GetText(); !prompt.Blank(t) {
				out = append(out, text(t))
			}
		}
	}
	return out
}

// digest identifies the content of a message.
type digest [sha256.Size]byte

func digestOf(role sessionv1.Role, blocks []*sessionv1.Block) digest {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n", role)
	for _, b := range blocks {
		raw, err := marshal.Marshal(b)
		if err != nil {
			panic(fmt.Sprintf("a block does not marshal: %v", err)) // it was read from the store
		}
		_, _ = fmt.Fprintf(h, "%d\n", len(raw))
		_, _ = h.Write(raw)
	}
	return digest(h.Sum(nil))
}

// original returns text as a block of a message.
func original(s string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}}
}
