package openai

import (
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// part is a part of a user's message: a text or an image.
type part struct {
	text  string
	image *commonv1.Media
}

// appendUser writes a tool message for each result, and then a user message with
// everything else: the user's words, and the images of results.
func appendUser(buf []byte, c *prompt.Conversation, blocks []*sessionv1.Block) []byte {
	var parts []part
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_ToolResult:
			text, images := result(k.ToolResult)
			buf = prompt.AppendString(append(prompt.Next(buf), `{"role":"tool","tool_call_id":`...), c.ID(k.ToolResult.GetCallId()))
			buf = prompt.AppendString(append(buf, `,"content":`...), text)
			buf = append(buf, '}')
			parts = append(parts, images...)
		case *sessionv1.Block_Content:
			parts = append(parts, newPart(k.Content))
		}
	}
	if len(parts) == 0 {
		return buf
	}
	return appendParts(buf, parts)
}

// appendParts writes a user message. Text alone is sent as a plain string, which
// every server understands.
func appendParts(buf []byte, parts []part) []byte {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.image != nil }) {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.text
		}
		return appendMessage(buf, "user", strings.Join(texts, "\n\n"))
	}
	buf = append(prompt.Next(buf), `{"role":"user","content":[`...)
	for _, p := range parts {
		if p.image == nil {
			buf = prompt.AppendString(append(prompt.Next(buf), `{"type":"text","text":`...), p.text)
			buf = append(buf, '}')
			continue
		}
		buf = append(prompt.Next(buf), `{"type":"image_url","image_url":{"url":`...)
		buf = prompt.AppendDataURL(buf, media.Canonical(p.image.GetMediaType()), p.image.GetData())
		buf = append(buf, "}}"...)
	}
	return append(buf, "]}"...)
}

// sent gives the blocks that the request's messages of the user and of tools are made of.
func sent(c *prompt.Conversation) (out [][]*sessionv1.Block) {
	if c.System != "" {
		out = append(out, nil)
	}
	for _, m := range c.Messages {
		if m.Role == sessionv1.Role_ROLE_ASSISTANT {
			out = append(out, nil)
			continue
		}
		var parts []*sessionv1.Block
		for i, b := range m.Blocks {
			n := 1
			if r := b.GetToolResult(); r != nil {
				_, images := result(r)
				out, n = append(out, m.Blocks[i:i+1]), len(images)
			}
			parts = append(parts, slices.Repeat([]*sessionv1.Block{b}, n)...)
		}
		if len(parts) > 0 {
			out = append(out, parts)
		}
	}
	return out
}

// result returns a result as text, and its images, which go into a user message
// because tool messages hold only text.
func result(r *sessionv1.ToolResult) (string, []part) {
	var lines []string
	var images []part
	if why := prompt.Explain(r.GetOutcome()); why != "" {
		lines = append(lines, why)
	} else if prompt.IsError(r.GetOutcome()) {
		lines = append(lines, "The tool reports an error:")
	}
	for _, piece := range r.GetContent() {
		p := newPart(piece)
		switch {
		case p.image != nil:
			lines = append(lines, "[an image, shown in the next message]")
			images = append(images, p)
		case !prompt.Blank(p.text):
			lines = append(lines, p.text)
		}
	}
	if len(lines) == 0 {
		return "(no output)", images
	}
	return strings.Join(lines, "\n"), images
}

func newPart(c *commonv1.Content) part {
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Image:
		return part{image: k.Image}
	case *commonv1.Content_Document:
		return part{text: prompt.DocumentText(k.Document)}
	}
	return part{text: c.GetText().GetText()}
}
