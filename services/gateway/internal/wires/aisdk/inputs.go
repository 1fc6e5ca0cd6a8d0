package aisdk

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// request is what DefaultChatTransport sends, with what an application may add to its body.
type request struct {
	ID        string    `json:"id"`
	Messages  []message `json:"messages"`
	Message   *message  `json:"message"`
	Trigger   string    `json:"trigger"`
	MessageID string    `json:"messageId"`

	Agent       string       `json:"agent"`
	ClientTools []clientTool `json:"clientTools"`
}

// clientTool is a tool that runs in the browser.
type clientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// message is a UIMessage. Parts are read when they are needed: an unknown kind must not be an error.
type message struct {
	ID    string            `json:"id"`
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

// given is a part of a message that a client sends.
type given struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	MediaType  string          `json:"mediaType"`
	URL        string          `json:"url"`
	Filename   string          `json:"filename"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"`
	Output     json.RawMessage `json:"output"`
	ErrorText  string          `json:"errorText"`
	Approval   struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
}

// Triggers of a request.
const (
	submit     = "submit-message"
	regenerate = "regenerate-message"
)

// last returns the message that counts, and where it is.
func (r *request) last() (message, string, error) {
	switch {
	case r.ID == "":
		return message{}, "", problem.BodyMalformed("id", "id is missing: it names the conversation")
	case r.Trigger != "" && r.Trigger != submit && r.Trigger != regenerate:
		return message{}, "", problem.BodyMalformed("trigger", fmt.Sprintf("trigger %q is not served; send %s or %s", problem.Excerpt(r.Trigger), submit, regenerate))
	case r.Message != nil:
		return *r.Message, "message", nil
	case len(r.Messages) == 0:
		return message{}, "", problem.BodyMalformed("messages", "messages is empty: its last one is what the agent answers")
	case len(r.Messages) > wire.MostMessages:
		return message{}, "", wire.TooMany("messages", len(r.Messages), wire.MostMessages)
	default:
		return r.Messages[len(r.Messages)-1], fmt.Sprintf("messages[%d]", len(r.Messages)-1), nil
	}
}

// content returns what a user's message says. field is where it is.
func (m message) content(field string) ([]*commonv1.Content, error) {
	if err := wire.TooMany(field+".parts", len(m.Parts), wire.MostContent); err != nil {
		return nil, err
	}
	var all []*commonv1.Content
	for i, raw := range m.Parts {
		at := fmt.Sprintf("%s.parts[%d]", field, i)
		var p given
		if err := json.Unmarshal(raw, &p); err != nil {
			if p.Type == "text" || p.Type == "file" {
				return nil, problem.BodyMalformed(at, at+" is no part of a message: "+err.Error())
			}
			continue
		}
		switch {
		case p.Type == "text" && p.Text != "":
			all = append(all, &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: p.Text}}})
		case p.Type == "file":
			c, err := p.file(at)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, problem.BodyMalformed(field+".parts", field+".parts has neither text nor files: a message needs one")
	}
	return all, nil
}

// file returns the content of an upload, or of a file of ours.
func (p given) file(at string) (*commonv1.Content, error) {
	m := &commonv1.Media{MediaType: p.MediaType, Title: p.Filename}
	switch {
	case strings.HasPrefix(p.URL, "file://"), strings.HasPrefix(p.URL, "workspace://"):
		m.Uri = p.URL
	case strings.HasPrefix(p.URL, "data:"):
		kind, data, err := dataURL(p.URL)
		if err != nil {
			return nil, problem.BodyMalformed(at+".url", at+".url is not a data: URL that can be read: "+err.Error())
		}
		m.Data = data
		if m.MediaType == "" {
			m.MediaType = kind
		}
	default:
		return nil, problem.BodyMalformed(at+".url", at+".url must be a data: URL, or file:// or workspace:// of this server: other addresses are not fetched")
	}
	if strings.HasPrefix(m.GetMediaType(), "image/") {
		return &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}}, nil
	}
	return &commonv1.Content{Kind: &commonv1.Content_Document{Document: m}}, nil
}

// dataURL returns the type and the data of a data: URL.
func dataURL(u string) (kind string, data []byte, err error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(u, "data:"), ",")
	if !ok {
		return "", nil, fmt.Errorf("it has no comma")
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return "", nil, err
	}
	kind, encoded := strings.CutSuffix(head, ";base64")
	if !encoded {
		return kind, []byte(text), nil
	}
	text = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", " ", "", "-", "+", "_", "/").Replace(text), "=")
	data, err = base64.RawStdEncoding.DecodeString(text)
	return kind, data, err
}

// tools returns the tools that run in the browser.
func (r *request) tools() ([]*sessionv1.ClientTool, error) {
	if err := wire.TooMany("clientTools", len(r.ClientTools), wire.MostTools); err != nil {
		return nil, err
	}
	var all []*sessionv1.ClientTool
	for i, t := range r.ClientTools {
		if t.Name == "" {
			return nil, problem.BodyMalformed(fmt.Sprintf("clientTools[%d].name", i), "a tool of the browser needs a name")
		}
		all = append(all, &sessionv1.ClientTool{Name: t.Name, Description: t.Description, InputSchemaJson: string(t.InputSchema)})
	}
	return all, nil
}

// decision is what the browser says about a call: an approval, or a result.
type decision struct {
	call     string
	approved *bool
	comment  string
	output   json.RawMessage
	failed   *string
}

// decisions returns those of the last step of an assistant message. What lies before is our own output coming back.
func (m message) decisions() []decision {
	var all []decision
	for _, raw := range m.Parts {
		var p given
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		if p.Type == "step-start" {
			all = nil
		}
		if p.Type != "dynamic-tool" && !strings.HasPrefix(p.Type, "tool-") || p.ToolCallID == "" {
			continue
		}
		switch p.State {
		case "approval-responded":
			if p.Approval.Approved != nil {
				all = append(all, decision{call: p.Approval.ID, approved: p.Approval.Approved, comment: p.Approval.Reason})
			}
		case "output-available":
			all = append(all, decision{call: p.ToolCallID, output: p.Output})
		case "output-error":
			all = append(all, decision{call: p.ToolCallID, failed: &p.ErrorText})
		}
	}
	return all
}

// asked is what the log says that a turn asked for.
type asked struct {
	digests   map[string]string // of approvals, by call
	questions map[string]string // the last one of each call
	finished  map[string]bool
	waits     []string // now
	after     int64    // the number at which the turn began to wait for what a request decides
}

// readAsked reads the log of a turn. decided are the calls that the request decides.
func readAsked(turn string, decided []string, events []*sessionv1.Event) asked {
	a := asked{digests: map[string]string{}, questions: map[string]string{}, finished: map[string]bool{}}
	for _, e := range events {
		if e.GetTurn() != turn {
			continue
		}
		switch b := e.GetBody().(type) {
		case *sessionv1.Event_ApprovalRequested:
			a.digests[b.ApprovalRequested.GetCallId()] = b.ApprovalRequested.GetDigest()
		case *sessionv1.Event_QuestionRequested:
			a.questions[b.QuestionRequested.GetCallId()] = b.QuestionRequested.GetQuestion().GetId()
		case *sessionv1.Event_ToolCallFinished:
			a.finished[b.ToolCallFinished.GetCallId()] = true
		case *sessionv1.Event_TurnWaiting:
			a.waits = b.TurnWaiting.GetCallIds()
			if a.after == 0 && slices.ContainsFunc(a.waits, func(id string) bool { return slices.Contains(decided, id) }) {
				a.after = e.GetSeq()
			}
		case *sessionv1.Event_TurnResumed, *sessionv1.Event_TurnFinished:
			a.waits = nil
		}
	}
	return a
}

// result returns a browser's output as content.
func result(output json.RawMessage) []*commonv1.Content {
	s := string(bytes.TrimSpace(output))
	var plain string
	if json.Unmarshal(output, &plain) == nil {
		s = plain
	}
	if s == "" {
		return nil
	}
	return []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}
}
