package managed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// userEvent is an event that a client sends.
type userEvent struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`

	ToolUse       string  `json:"tool_use_id"`
	CustomToolUse string  `json:"custom_tool_use_id"`
	Result        string  `json:"result"`
	DenyMessage   *string `json:"deny_message"`
	IsError       bool    `json:"is_error"`
}

// message returns the turn of a user's message.
func (e userEvent) message(field string, d *sessionDoc) (*sessionv1.CreateTurnRequest, error) {
	content, err := contents(e.Content, field+".content")
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, resource.Bad(field+".content", "it is empty")
	}
	return &sessionv1.CreateTurnRequest{Content: content, OnActive: sessionv1.OnActive_ON_ACTIVE_QUEUE, ClientTools: d.clientTools()}, nil
}

// callOf returns the id of the call that an event's id names.
func callOf(event, field string) (string, error) {
	call, ok := strings.CutPrefix(event, callID(""))
	if !ok || call == "" {
		return "", resource.Bad(field, problem.Excerpt(event)+" is no event of a tool's use in this session")
	}
	return call, nil
}

// contentBlock is a block of content that a client sends.
type contentBlock struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Title   string `json:"title"`
	Context string `json:"context"`
	Source  struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		File      string `json:"file_id"`
	} `json:"source"`
}

// contents returns content in our terms.
func contents(raw json.RawMessage, field string) ([]*commonv1.Content, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw, _ = json.Marshal([]contentBlock{{Type: "text", Text: text}}) //nolint:errchkjson // texts cannot fail
	}
	var in []contentBlock
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, resource.Bad(field, "it is no list of blocks of content")
	}
	if err := wire.TooMany(field, len(in), wire.MostContent); err != nil {
		return nil, err
	}
	var out []*commonv1.Content
	for i, b := range in {
		place := fmt.Sprintf("%s[%d]", field, i)
		if b.Type == "text" {
			if b.Text == "" {
				return nil, resource.Bad(place+".text", "it is empty")
			}
			out = append(out, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: b.Text}}})
			continue
		}
		if b.Type != "image" && b.Type != "document" {
			return nil, resource.Bad(place+".type", problem.Excerpt(b.Type)+" is not served; the types are text, image and document")
		}
		m, err := b.media(place)
		if err != nil {
			return nil, err
		}
		if b.Type == "image" {
			out = append(out, &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}})
			continue
		}
		if b.Context != "" {
			out = append(out, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: b.Context}}})
		}
		out = append(out, &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}})
	}
	return out, nil
}

func (b contentBlock) media(place string) (*commonv1.Media, error) {
	m := &commonv1.Media{Title: b.Title, MediaType: b.Source.MediaType}
	switch b.Source.Type {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil {
			return nil, resource.Bad(place+".source.data", "it is not base64")
		}
		m.Data = data
	case "text":
		m.MediaType, m.Data = "text/plain", []byte(b.Source.Data)
	case "file":
		m.MediaType, m.Uri = "", "file://"+strings.TrimPrefix(b.Source.File, filePrefix)
	default:
		return nil, resource.Bad(place+".source.type", problem.Excerpt(b.Source.Type)+" is not served; send base64, text or file")
	}
	return m, nil
}
