package modelview

import (
	"fmt"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
)

// Limits of the images and documents of a request, below those of the
// providers: 100 of them and 32 MB with everything else, as base64.
const (
	maxMedia      = 100
	maxMediaBytes = 20 << 20
)

// medium is the position of an image or a document in a list of messages.
type medium struct {
	message, block int
	piece          int // of a result; -1: the block is the medium
	bytes, side    int
}

// sendable returns messages that the model accepts. It shows results of tools in a form
// that models see, and replaces with notes: content that the model has refused, media
// that no model accepts, and the oldest media beyond the limits of a request. It returns
// other messages unchanged.
func sendable(ms []*sessionv1.Message, model string) []*sessionv1.Message {
	s := &screen{ms: ms, model: model}
	for i, m := range ms {
		for j, b := range m.Blocks {
			s.block(i, j, b)
		}
	}
	for _, m := range s.media[:surplus(s.media)] {
		s.replace(m, "is left out: the conversation has more pictures and documents than a request may have")
	}
	return s.ms
}

// screen replaces content that cannot be sent, in copies.
type screen struct {
	ms     []*sessionv1.Message
	model  string
	copied map[int]bool // nil: ms is the caller's
	media  []medium     // that can be sent
}

func (s *screen) block(i, j int, b *sessionv1.Block) {
	refused := refusedBy(b, s.model)
	for p, c := range b.GetToolResult().GetContent() {
		if seen := shown(c); seen != c {
			s.put(medium{message: i, block: j, piece: p}, seen)
		}
	}
	b = s.ms[i].Blocks[j]
	switch k := b.Kind.(type) {
	case *sessionv1.Block_Content:
		if refused != nil {
			s.replace(medium{message: i, block: j, piece: -1}, refusal(refused.Reason))
			return
		}
		s.content(medium{message: i, block: j, piece: -1}, k.Content)
	case *sessionv1.Block_ToolResult:
		media := hasMedia(k.ToolResult)
		for p, c := range k.ToolResult.Content {
			if refused != nil && (!media || isMedium(c)) {
				s.replace(medium{message: i, block: j, piece: p}, refusal(refused.Reason))
				continue
			}
			s.content(medium{message: i, block: j, piece: p}, c)
		}
	}
}

// content checks one piece of content.
func (s *screen) content(at medium, c *commonv1.Content) {
	var err error
	switch k := c.Kind.(type) {
	case *commonv1.Content_Image:
		size, e := media.Image(k.Image.MediaType, k.Image.Data)
		at.bytes, at.side, err = len(k.Image.Data), max(size.Width, size.Height), e
	case *commonv1.Content_Document:
		at.bytes, err = len(k.Document.Data), media.Document(k.Document.MediaType, k.Document.Data)
	default:
		return
	}
	if err != nil {
		s.replace(at, "is left out: it "+err.Error())
		return
	}
	s.media = append(s.media, at)
}

func refusal(said string) string { return "is left out: " + cutMiddle(said, 512) }

// replace replaces a piece of content with a note.
func (s *screen) replace(at medium, why string) {
	b := s.ms[at.message].Blocks[at.block]
	if at.piece < 0 {
		s.put(at, note(b.GetContent(), why))
		return
	}
	s.put(at, note(b.GetToolResult().GetContent()[at.piece], why))
}

// put replaces a piece of content.
func (s *screen) put(at medium, c *commonv1.Content) {
	if s.copied == nil {
		s.ms, s.copied = slices.Clone(s.ms), map[int]bool{}
	}
	m := s.ms[at.message]
	if !s.copied[at.message] {
		m = &sessionv1.Message{
			Name: m.Name, Parent: m.Parent, Role: m.Role, Blocks: slices.Clone(m.Blocks),
			Turn: m.Turn, Step: m.Step, CreateTime: m.CreateTime, Compaction: m.Compaction,
		}
		s.ms[at.message], s.copied[at.message] = m, true
	}
	if at.piece < 0 {
		m.Blocks[at.block] = &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}}
		return
	}
	r := m.Blocks[at.block].GetToolResult()
	content := slices.Clone(r.Content)
	content[at.piece] = c
	m.Blocks[at.block] = &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{
		CallId: r.CallId, Outcome: r.Outcome, Content: content,
	}}}
}

func note(c *commonv1.Content, why string) *commonv1.Content {
	what := "a text"
	switch {
	case c.GetImage() != nil:
		what = "an image"
	case c.GetDocument() != nil:
		what = "a document"
	}
	if title := c.GetImage().GetTitle() + c.GetDocument().GetTitle(); title != "" {
		what = fmt.Sprintf("%s, %q,", what, title)
	}
	return text("[" + what + " " + why + "]")
}

// surplus returns how many of the media, the oldest first, do not fit into a
// request. They are removed in groups, so that not each new one changes the part
// that the provider has cached.
func surplus(all []medium) int {
	most, bytes := maxMedia, 0
	for _, m := range all {
		bytes += m.bytes
		if m.side > media.ManySide {
			most = media.MaxCount // above this number a provider accepts only small images
		}
	}
	over := max(0, len(all)-most)
	for i, m := range all {
		if i >= over && bytes <= maxMediaBytes {
			break
		}
		bytes -= m.bytes
		over = max(over, i+1)
	}
	if over == 0 {
		return 0
	}
	group := most / 5
	last := slices.IndexFunc(all, func(m medium) bool { return m.message == all[len(all)-1].message })
	return max(over, min((over+group-1)/group*group, last))
}

func isMedium(c *commonv1.Content) bool { return c.GetImage() != nil || c.GetDocument() != nil }

func hasMedia(r *sessionv1.ToolResult) bool { return slices.ContainsFunc(r.Content, isMedium) }
