package modelview

import (
	"unicode/utf8"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	perMessage = 4    // tokens around a message
	perImage   = 1600 // an image of ordinary size
)

// leastView is the least size of a view, in tokens: a message cut short, and room
// for an answer.
const leastView = 128

// MostFixed returns how many tokens a prompt and tools may have in a context, so
// that there is room for a conversation, however short.
func MostFixed(context int64) int64 { return context - min(leastView, context/2) }

// Tokens estimates the tokens of messages. It errs on the side of too many.
func Tokens(ms []*sessionv1.Message) (n int64) {
	for _, m := range ms {
		n += perMessage
		for _, b := range m.Blocks {
			n += blockTokens(b)
		}
	}
	return n
}

func blockTokens(b *sessionv1.Block) int64 {
	n := int64(perMessage)
	switch k := b.Kind.(type) {
	case *sessionv1.Block_Content:
		n += contentTokens(k.Content)
	case *sessionv1.Block_Thinking:
		n += TextTokens(k.Thinking.Text)
	case *sessionv1.Block_ToolUse:
		n += TextTokens(k.ToolUse.Tool) + TextTokens(k.ToolUse.ArgumentsJson)
	case *sessionv1.Block_ToolResult:
		for _, c := range k.ToolResult.Content {
			n += contentTokens(c)
		}
	}
	return n
}

func contentTokens(c *commonv1.Content) int64 {
	switch k := shown(c).Kind.(type) {
	case *commonv1.Content_Text:
		return TextTokens(k.Text.Text)
	case *commonv1.Content_Image:
		return perImage
	case *commonv1.Content_Document:
		return perMessage + int64(len(k.Document.Data))/4
	default:
		return 0
	}
}

// TextTokens estimates the tokens of a text: one for four ASCII letters, one
// for each other character.
func TextTokens(s string) int64 {
	runes := int64(utf8.RuneCountInString(s))
	ascii := int64(0)
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return (ascii+3)/4 + runes - ascii
}
