package mcp

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// failed returns the result of a call that has none of its own.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// resultOf returns a call's result in the form of the protocol.
func resultOf(r *sessionv1.ToolResult) *sdk.CallToolResult {
	result := &sdk.CallToolResult{IsError: r.GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_OK, Content: []sdk.Content{}}
	for _, c := range r.GetContent() {
		result.Content = append(result.Content, contentOf(c))
	}
	if s := r.GetStructuredJson(); s != "" && json.Valid([]byte(s)) {
		result.StructuredContent = json.RawMessage(s)
	}
	return result
}

// contentOf returns one piece of a result.
func contentOf(c *commonv1.Content) sdk.Content {
	switch k := c.GetKind().(type) {
	case *commonv1.Content_Image:
		return &sdk.ImageContent{Data: k.Image.GetData(), MIMEType: k.Image.GetMediaType()}
	case *commonv1.Content_Document:
		return document(k.Document)
	case *commonv1.Content_Audio:
		return &sdk.AudioContent{Data: k.Audio.GetData(), MIMEType: k.Audio.GetMediaType()}
	case *commonv1.Content_Resource:
		return &sdk.EmbeddedResource{Resource: resourceOf(k.Resource)}
	case *commonv1.Content_ResourceLink:
		return linkOf(k.ResourceLink)
	default:
		return &sdk.TextContent{Text: c.GetText().GetText()}
	}
}

// document returns a document as an embedded resource: as text where it is one.
func document(m *commonv1.Media) sdk.Content {
	title := m.GetTitle()
	if title == "" {
		title = "document"
	}
	r := &sdk.ResourceContents{URI: "document:///" + url.PathEscape(title), MIMEType: m.GetMediaType()}
	if strings.HasPrefix(m.GetMediaType(), "text/") {
		r.Text = strings.ToValidUTF8(string(m.GetData()), "\uFFFD")
	} else {
		r.Blob = m.GetData()
	}
	return &sdk.EmbeddedResource{Resource: r}
}

// resourceOf returns a resource of a connected server.
func resourceOf(r *commonv1.Resource) *sdk.ResourceContents {
	return &sdk.ResourceContents{URI: r.GetUri(), MIMEType: r.GetMediaType(), Text: r.GetText(), Blob: r.GetData()}
}

func linkOf(l *commonv1.ResourceLink) sdk.Content {
	out := &sdk.ResourceLink{
		URI: l.GetUri(), Name: cmp.Or(l.GetName(), l.GetUri()), Title: l.GetTitle(), Description: l.GetDescription(), MIMEType: l.GetMediaType(),
	}
	if l.GetSize() > 0 {
		out.Size = &l.Size
	}
	return out
}
