package view

import (
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Refusal is what a provider has refused of a conversation.
type Refusal struct {
	// Media are pictures and documents; else texts are meant.
	Media bool
	// Older also means what the provider took before, if nothing else is left.
	Older bool
	// Said are the provider's words.
	Said string
}

// Refuse marks what came since the last answer of the model, of the kind that r
// means. It gives the messages that changed, and tells whether a person sent any of
// that. What was marked before is not marked again.
func Refuse(path []*sessionv1.Message, r Refusal) (revised []*sessionv1.Message, persons bool) {
	at := len(path)
	for at > 0 && path[at-1].Role == sessionv1.Role_ROLE_USER {
		at--
	}
	revised, persons = r.mark(path[at:])
	if len(revised) == 0 && r.Media && r.Older {
		return r.mark(path[:at])
	}
	return revised, persons
}

func (r Refusal) mark(ms []*sessionv1.Message) (revised []*sessionv1.Message, persons bool) {
	for _, m := range ms {
		var marked *sessionv1.Message
		for i, b := range m.Blocks {
			if m.Role != sessionv1.Role_ROLE_USER || m.Compaction != nil || !r.means(b) {
				continue
			}
			if marked == nil {
				marked = proto.CloneOf(m)
				revised = append(revised, marked)
			}
			marked.Blocks[i].Refused = r.Said
			persons = persons || b.GetContent() != nil
		}
	}
	return revised, persons
}

// means tells whether a block is of the kind.
func (r Refusal) means(b *sessionv1.Block) bool {
	if b.Refused != "" {
		return false
	}
	switch k := b.Kind.(type) {
	case *sessionv1.Block_Content:
		return isMedium(k.Content) == r.Media
	case *sessionv1.Block_ToolResult:
		return hasMedia(k.ToolResult) == r.Media
	default:
		return false
	}
}
