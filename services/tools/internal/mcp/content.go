package mcp

import (
	"fmt"
	"regexp"
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
	// maxMedia bounds the images, the sound and the data of resources of a result together.
	maxMedia = 10 << 20
	// maxAddress bounds the address of a resource, maxLabel its names, maxType its media type.
	maxAddress = 8192
	maxLabel   = 1000
	maxType    = 200
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
	data    int // parts that are data
	bytes   int // of them
	json    string
}

func (b *builder) add(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		b.text(c.Text)
	case *mcp.ImageContent:
		b.image(c.MIMEType, c.Data)
	case *mcp.AudioContent:
		b.audio(c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		b.link(c)
	case *mcp.EmbeddedResource:
		b.resource(c.Resource)
	default:
		b.note("a part of a kind that is not known was left out")
	}
}

// link adds a link to a resource.
func (b *builder) link(c *mcp.ResourceLink) {
	if c.URI == "" || len(c.URI) > maxAddress {
		b.note("a link to a resource was left out: its address has %d bytes, and the most is %d", len(c.URI), maxAddress)
		return
	}
	l := &commonv1.ResourceLink{
		Uri: valid(c.URI), Name: cut(valid(c.Name), maxLabel), Title: cut(valid(c.Title), maxLabel),
		Description: cut(valid(c.Description), maxDescription/2), MediaType: cut(valid(c.MIMEType), maxType),
	}
	if c.Size != nil {
		l.Size = max(0, *c.Size)
	}
	b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_ResourceLink{ResourceLink: l}})
}

// resource adds what is at an address: its text, as far as there is room, or its data.
func (b *builder) resource(r *mcp.ResourceContents) {
	switch {
	case r == nil:
		b.note("a resource without content was left out")
		return
	case r.URI == "" || len(r.URI) > maxAddress:
		b.note("a resource was left out: its address has %d bytes, and the most is %d", len(r.URI), maxAddress)
		return
	}
	kept := &commonv1.Resource{Uri: valid(r.URI), MediaType: cut(valid(r.MIMEType), maxType)}
	if len(r.Blob) > 0 {
		if !b.holds(kept.MediaType, r.Blob) {
			return
		}
		kept.Data = r.Blob
	} else {
		kept.Text = b.fit(r.Text)
	}
	b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Resource{Resource: kept}})
}

// text adds a text, as far as there is room.
func (b *builder) text(s string) { b.plain(b.fit(s)) }

// fit returns the beginning of a text for which there is room.
func (b *builder) fit(s string) string {
	s = valid(s)
	if len(s) > b.room {
		end := b.room
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		b.left += len(s) - end
		s, b.room = s[:end], end
	}
	b.room -= len(s)
	return s
}

// valid returns a text of a server as UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func (b *builder) plain(s string) {
	if s != "" {
		b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}})
	}
}

func (b *builder) note(format string, args ...any) { b.plain("[" + fmt.Sprintf(format, args...) + "]") }

// image adds an image that models take.
func (b *builder) image(kind string, data []byte) {
	kind = media.Canonical(kind)
	if _, err := media.Image(kind, data); err != nil {
		b.note("a part of type %s was left out: it %s", cut(valid(kind), maxType), err.Error())
		return
	}
	if b.holds(kind, data) {
		b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: kind, Data: data}}})
	}
}

// audio adds sound.
func (b *builder) audio(kind string, data []byte) {
	if kind = media.Canonical(kind); !mediaType.MatchString(kind) {
		kind = "application/octet-stream"
	}
	switch {
	case len(data) == 0:
		b.note("an empty part of type %s was left out", kind)
	case len(data) > media.MaxBytes:
		b.note("a part of type %s was left out: it has %d bytes, and the most is %d", kind, len(data), media.MaxBytes)
	case b.holds(kind, data):
		b.content = append(b.content, &commonv1.Content{Kind: &commonv1.Content_Audio{Audio: &commonv1.Media{MediaType: kind, Data: data}}})
	}
}

// holds reports whether the result has room for data, and notes it if it has not.
func (b *builder) holds(kind string, data []byte) bool {
	if b.data == media.MaxCount || b.bytes+len(data) > maxMedia {
		b.note("a part of type %s with %d bytes was left out: the result has too many", cut(valid(kind), maxType), len(data))
		return false
	}
	b.data++
	b.bytes += len(data)
	return true
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
