package mcp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// maxText bounds the text of a result, and maxStructured its JSON.
	maxText       = 128 << 10
	maxStructured = 1 << 20
	// maxMedia bounds the images and documents of a result together.
	maxMedia = 10 << 20
	// maxBlocks bounds the blocks of a result.
	maxBlocks = 200
)

var mediaType = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}/[A-Za-z0-9.+_-]{1,100}$`)

// convertResult returns the result for the model. What is too large or cannot be shown is
// left out, with a note.
func convertResult(r *mcp.CallToolResult) *tool.Result {
	b := builder{room: maxText}
	for i, c := range r.Content {
		if i == maxBlocks {
			b.note("%d more parts of the result were left out", len(r.Content)-i)
			break
		}
		b.add(c)
	}
	b.structured(r)
	b.close()
	result := &tool.Result{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: b.content, StructuredJson: b.json}
	if r.IsError {
		result.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
	}
	return result
}

// builder collects the content of a result.
type builder struct {
	content []*commonv1.Content
	room    int // for text, in bytes
	left    int // bytes of text that were left out
	images  int
	bytes   int // of images and documents
	json    string
}

func (b *builder) add(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		b.text(c.Text)
	case *mcp.ImageContent:
		b.media(c.MIMEType, "", c.Data)
	case *mcp.AudioContent:
		b.media(c.MIMEType, "", c.Data)
	case *mcp.ResourceLink:
		b.text(linkText(c))
	case *mcp.EmbeddedResource:
		b.resource(c.Resource)
	default:
		b.note("a part of a kind that is not known was left out")
	}
}

// linkText describes a link to a resource.
func linkText(c *mcp.ResourceLink) string {
	said := slices.DeleteFunc([]string{c.URI, c.Title, c.Name, c.MIMEType, c.Description}, func(s string) bool { return s == "" })
	return "[Resource " + strings.Join(said, ", ") + "]"
}

func (b *builder) resource(r *mcp.ResourceContents) {
	switch {
	case r == nil:
		b.note("a resource without content was left out")
	case len(r.Blob) > 0:
		b.media(r.MIMEType, r.URI, r.Blob)
	default:
		b.text(fmt.Sprintf("[Resource %s]\n%s", r.URI, r.Text))
	}
}

// text adds a text, as far as there is room.
func (b *builder) text(s string) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > b.room {
		end := b.room
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		b.left += len(s) - end
		s, b.room = s[:end], end
	}
	b.room -= len(s)
	b.plain(s)
}

func (b *builder) plain(s string) {
	if s != "" {
		b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}})
	}
}

func (b *builder) note(format string, args ...any) { b.plain("[" + fmt.Sprintf(format, args...) + "]") }

// media adds an image or a document.
func (b *builder) media(kind, title string, data []byte) {
	kind = media.Canonical(kind)
	if !mediaType.MatchString(kind) {
		kind = "application/octet-stream"
	}
	err := media.Document(kind, data)
	image := strings.HasPrefix(kind, "image/")
	if image {
		_, err = media.Image(kind, data)
	}
	switch {
	case err != nil:
		b.note("a part of type %s was left out: it %s", kind, err.Error())
		return
	case len(data) == 0:
		b.note("an empty part of type %s was left out", kind)
		return
	case b.images == media.MaxCount || b.bytes+len(data) > maxMedia:
		b.note("a part of type %s with %d bytes was left out: the result has too many", kind, len(data))
		return
	}
	b.images++
	b.bytes += len(data)
	m := &commonv1.Media{MediaType: kind, Title: cut(strings.ToValidUTF8(title, "\uFFFD"), 200), Data: data}
	if image {
		b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}})
		return
	}
	b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}})
}

// structured keeps the result as JSON. The model reads it where the server has not said
// the same in text.
func (b *builder) structured(r *mcp.CallToolResult) {
	if r.StructuredContent == nil {
		return
	}
	text, ok := r.StructuredContent.(string) // made by exact
	switch {
	case !ok:
		b.note("the structured result cannot be read")
		return
	case len(text) > maxStructured:
		b.note("the structured result has %d bytes and was left out; the most is %d", len(text), maxStructured)
	default:
		b.json = text
	}
	if len(b.content) == 0 {
		b.text(text)
	}
}

// close says what was left out.
func (b *builder) close() {
	if b.left > 0 {
		b.note("%d bytes of text were left out: a result may have %d", b.left, maxText)
	}
}
