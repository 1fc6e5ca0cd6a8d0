package a2a

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// depthHeader is the header for depthExtension.
const depthHeader = "Fairlead-A2A-Depth"

// sendRequest is a SendMessageRequest. Members that are not here are ignored.
type sendRequest struct {
	Tenant        string                     `json:"tenant"`
	Message       *message                   `json:"message"`
	Metadata      map[string]json.RawMessage `json:"metadata"`
	Configuration struct {
		Accepted    []string        `json:"acceptedOutputModes"`
		History     *int            `json:"historyLength"`
		Immediately bool            `json:"returnImmediately"`
		Push        json.RawMessage `json:"taskPushNotificationConfig"`
	} `json:"configuration"`
}

// check finds what is wrong with a request.
func (in *sendRequest) check() error {
	m := in.Message
	switch {
	case in.Tenant != "":
		return bad("tenant", "is not served: the card names none")
	case m == nil:
		return bad("message", "is missing")
	case m.MessageID == "":
		return bad("message.messageId", "is missing: give each message an id of its own")
	case m.Role != roleUser:
		return bad("message.role", "has to be "+roleUser)
	case len(m.Parts) == 0:
		return bad("message.parts", "is empty: a message needs at least one part")
	case len(m.Parts) > wire.MostContent:
		return bad("message.parts", fmt.Sprintf("has %d parts; send at most %d", len(m.Parts), wire.MostContent))
	}
	if h := in.Configuration.History; h != nil && *h < 0 {
		return bad("configuration.historyLength", "is negative")
	}
	if len(in.Configuration.Push) > 0 && string(in.Configuration.Push) != "null" {
		return noPush()
	}
	for _, mode := range in.Configuration.Accepted {
		if mode == "*/*" || strings.HasPrefix(mode, "text/") || strings.HasPrefix(mode, "application/json") {
			return nil
		}
	}
	if len(in.Configuration.Accepted) > 0 {
		return fail(contentType, "the agent answers with text/plain and application/json, of which configuration.acceptedOutputModes has none")
	}
	return nil
}

// depthOf returns through how many agents a message has come.
func (c *call) depthOf(in *sendRequest) (depth int, err error) {
	for field, text := range map[string]string{
		depthHeader: c.r.Header.Get(depthHeader), "metadata": string(in.Metadata[depthExtension]), "message.metadata": string(in.Message.Metadata[depthExtension]),
	} {
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(strings.Trim(text, `"`), 64) // some clients write every number as 1.0
		if err != nil || n < 0 || n != math.Trunc(n) || n > math.MaxInt32 {
			return 0, bad(field, "has a depth that is no number of agents: "+problem.Excerpt(text))
		}
		depth = max(depth, int(n))
	}
	if depth > c.MaxDepth {
		return 0, fail(unsupported, fmt.Sprintf("the message has come through %d agents, and may through %d; answer without asking another agent, or ask the operator to raise gateway.a2a-max-depth", depth, c.MaxDepth))
	}
	return depth, nil
}

// turn returns the request for the turn that a message begins.
func (in *sendRequest) turn(depth int) (*sessionv1.CreateTurnRequest, error) {
	req := &sessionv1.CreateTurnRequest{}
	for i, p := range in.Message.Parts {
		content, err := p.content(fmt.Sprintf("message.parts[%d]", i))
		if err != nil {
			return nil, err
		}
		req.Content = append(req.Content, content)
	}
	if depth > 0 {
		req.Options = &sessionv1.TurnOptions{Context: fmt.Sprintf(
			"This message comes from another agent, through %d so far. If you ask an agent over A2A yourself, send the header %s: %d.", depth, depthHeader, depth+1)}
	}
	return req, nil
}

// content returns what the model gets of a part.
func (p part) content(field string) (*commonv1.Content, error) {
	if string(p.Data) == "null" && (p.Text != nil || p.Raw != nil || p.URL != nil) {
		p.Data = nil // some clients write every member
	}
	set := 0
	for _, has := range []bool{p.Text != nil, p.Raw != nil, p.URL != nil, len(p.Data) > 0} {
		if has {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, bad(field, "needs exactly one of text, raw, url and data")
	case p.Text != nil && strings.TrimSpace(*p.Text) == "":
		return nil, bad(field+".text", "is empty")
	case p.Text != nil:
		return textContent(*p.Text), nil
	case len(p.Data) > 0:
		return textContent(string(p.Data)), nil
	case p.URL != nil && (strings.HasPrefix(*p.URL, "file://") || strings.HasPrefix(*p.URL, "workspace://")):
		return p.media(&commonv1.Media{Uri: *p.URL})
	case p.URL != nil: // the server fetches nothing
		return textContent(strings.TrimSpace(fmt.Sprintf("(The client sent a file by its address: %s %s)", *p.URL, p.MediaType))), nil
	}
	data, err := base64.StdEncoding.DecodeString(*p.Raw)
	if err != nil {
		if data, err = base64.URLEncoding.DecodeString(*p.Raw); err != nil {
			return nil, bad(field+".raw", "is not base64: "+err.Error())
		}
	}
	if p.MediaType == "" {
		return nil, bad(field+".mediaType", "is missing beside raw")
	}
	return p.media(&commonv1.Media{Data: data})
}

// media returns a file.
func (p part) media(m *commonv1.Media) (*commonv1.Content, error) {
	m.MediaType, m.Title = p.MediaType, p.Filename
	kind, _, _ := strings.Cut(p.MediaType, "/")
	switch kind {
	case "audio", "video":
		return nil, fail(contentType, "the agent takes no "+kind+": send text, JSON, an image or a document")
	case "image":
		return &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}}, nil
	}
	return &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}}, nil
}

func textContent(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}

// push refuses what is about push notifications.
func (c *call) push() (any, error) { return nil, noPush() }

func noPush() error {
	return fail(pushUnsupported, "push notifications are not served for this agent: its card says so; follow the task with SubscribeToTask")
}
