package modelview

import (
	"slices"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Refusal is a provider's refusal of a part of a conversation.
type Refusal struct {
	// Model is the refusing model, as `provider:model`.
	Model string
	// Media says that it refused images and documents; otherwise texts.
	Media bool
	// Named are the blocks that the provider names. If one of them is of the kind, r
	// covers no others.
	Named []*sessionv1.Block
	// New covers content since the last answer: all media, but texts of one message only.
	New bool
	// Older also covers media that the provider accepted before, if nothing new is left.
	Older bool
	// Reason is the provider's text.
	Reason string
}

// Refuse marks the content that r covers. It returns the changed messages, and
// whether a person sent some of that content. It does not mark content again for
// the same model.
func Refuse(path []*sessionv1.Message, r Refusal) (revised []*sessionv1.Message, persons bool) {
	revised, persons = r.mark(path, func(b *sessionv1.Block) bool { return slices.Contains(r.Named, b) })
	if len(revised) > 0 || !r.New {
		return revised, persons
	}
	at := len(path)
	for at > 0 && path[at-1].Role == sessionv1.Role_ROLE_USER {
		at--
	}
	all := func(*sessionv1.Block) bool { return true }
	revised, persons = r.mark(path[at:], all)
	switch {
	case len(revised) > 1 && !r.Media:
		return nil, false // it may be any of them
	case len(revised) == 0 && r.Older:
		return r.mark(path[:at], all)
	}
	return revised, persons
}

func (r Refusal) mark(ms []*sessionv1.Message, among func(*sessionv1.Block) bool) (revised []*sessionv1.Message, persons bool) {
	for _, m := range ms {
		var marked *sessionv1.Message
		for i, b := range m.Blocks {
			if m.Role != sessionv1.Role_ROLE_USER || m.Compaction != nil || !r.means(b) || !among(b) {
				continue
			}
			if marked == nil {
				marked = proto.CloneOf(m)
				revised = append(revised, marked)
			}
			marked.Blocks[i].Refusals = append(marked.Blocks[i].Refusals, &sessionv1.Refusal{Model: r.Model, Reason: r.Reason})
			persons = persons || b.GetContent() != nil
		}
	}
	return revised, persons
}

// means reports whether r covers the kind of a block.
func (r Refusal) means(b *sessionv1.Block) bool {
	if refusedBy(b, r.Model) != nil {
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

// refusedBy gives the refusal of a block by a model; nil if there was none.
func refusedBy(b *sessionv1.Block, model string) *sessionv1.Refusal {
	for _, r := range b.Refusals {
		if r.Model == model {
			return r
		}
	}
	return nil
}
