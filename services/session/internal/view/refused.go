package view

import (
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Refusal is a provider's refusal of a part of a conversation.
type Refusal struct {
	// Media says that it refused images and documents; otherwise texts.
	Media bool
	// Older also covers content that the provider accepted before, if nothing
	// else is left.
	Older bool
	// Said is the provider's text.
	Said string
}

// Refuse marks the content since the model's last answer that r covers. It returns
// the changed messages, and whether a person sent some of that content. It does not
// mark content again.
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

// means reports whether r covers the kind of a block.
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
