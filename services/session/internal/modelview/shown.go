package modelview

import (
	"cmp"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
)

// shown returns content in the form in which models see it: what a tool's server has at an address becomes a text, an
// image or a document, and a link to it a text. No provider's API takes sound, which becomes a note.
func shown(c *commonv1.Content) *commonv1.Content {
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Audio:
		return text(fmt.Sprintf("[Sound of type %s, %d bytes, which this model cannot hear.]", k.Audio.GetMediaType(), len(k.Audio.GetData())))
	case *commonv1.Content_ResourceLink:
		return text(link(k.ResourceLink))
	case *commonv1.Content_Resource:
		return resource(k.Resource)
	default:
		return c
	}
}

func link(l *commonv1.ResourceLink) string {
	said := []string{l.GetUri()}
	for _, s := range []string{l.GetTitle(), l.GetName(), l.GetMediaType(), l.GetDescription()} {
		if s != "" {
			said = append(said, s)
		}
	}
	return "[Resource " + strings.Join(said, ", ") + "]"
}

func resource(r *commonv1.Resource) *commonv1.Content {
	kind := media.Canonical(r.GetMediaType())
	title := []rune(r.GetUri())
	m := &commonv1.Media{MediaType: kind, Data: r.GetData(), Title: string(title[:min(len(title), 256)])}
	switch {
	case len(r.GetData()) == 0:
		return text(fmt.Sprintf("[Resource %s]\n%s", r.GetUri(), r.GetText()))
	case strings.HasPrefix(kind, "image/"):
		return &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}}
	case kind == media.PDF:
		return &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}}
	default:
		return text(fmt.Sprintf("[Resource %s of type %s, %d bytes, which cannot be shown to this model.]", r.GetUri(), cmp.Or(kind, "unknown"), len(r.GetData())))
	}
}
