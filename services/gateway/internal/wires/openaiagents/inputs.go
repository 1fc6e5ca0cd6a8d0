package openaiagents

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// inputEvent is an event that a client sends.
type inputEvent struct {
	Type    string          `json:"type"`
	Input   json.RawMessage `json:"input"`
	Turn    string          `json:"turn_id"`
	Call    string          `json:"call_id"`
	Success *bool           `json:"success"`
	Output  json.RawMessage `json:"output"`
	Error   *string         `json:"error"`
	Request string          `json:"request_id"`
	Answer  struct {
		Type     string `json:"type"`
		Decision string `json:"decision"`
	} `json:"response"`
}

// send is an event of a request, after it has been checked: it has its effect.
type send func(c *request, key string) error

const inputPrefix = "agent.session.input."

// sendEvents takes the events that a client sends. All are checked before one has an effect.
func (s *eventsServer) sendEvents(c *request) (any, error) {
	var in struct {
		Events []inputEvent `json:"events"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.Events) == 0 {
		return nil, resource.Bad("events", "it is required, and not empty")
	}
	if err := wire.TooMany("events", len(in.Events), wire.MostEvents); err != nil {
		return nil, err
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	var every []send
	for i, e := range in.Events {
		do, err := s.prepare(c, x, e, fmt.Sprintf("events[%d]", i))
		if err != nil {
			return nil, err
		}
		every = append(every, do)
	}
	for i, do := range every {
		if err := do(c, c.Part(i)); err != nil {
			return nil, err
		}
	}
	c.W.WriteHeader(http.StatusAccepted)
	return nil, nil
}

// prepare checks an event.
func (s *eventsServer) prepare(c *request, x *sessionv1.Session, e inputEvent, field string) (send, error) {
	switch kind, _ := strings.CutPrefix(e.Type, inputPrefix); kind {
	case "message":
		return s.said(x, e, field)
	case "cancel":
		return s.cancel(x.GetName(), ""), nil
	case "tool_result":
		return s.toolResult(c, x.GetName(), e, field)
	case "mcp_approval_request_result":
		return s.decided(c, x.GetName(), e, field)
	}
	return nil, resource.Bad(field+".type", problem.Excerpt(e.Type)+" is not served; the types are "+inputPrefix+"message, "+inputPrefix+"cancel, "+inputPrefix+"tool_result and "+inputPrefix+"mcp_approval_request_result")
}

// said returns what sends a message: to an idle session as a turn, and into a turn that is active.
func (s *eventsServer) said(x *sessionv1.Session, e inputEvent, field string) (send, error) {
	content, err := messages(e.Input, field+".input")
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, resource.Bad(field+".input", "it is required, and not empty")
	}
	tools, _ := clientTools(sessionDocOf(x).Tools)
	return func(c *request, key string) error {
		ctx, cancel := s.within(c)
		defer cancel()
		_, err := s.wire.Sessions.CreateTurn(ctx, &sessionv1.CreateTurnRequest{
			Parent: x.GetName(), Content: content, ClientTools: tools, OnActive: sessionv1.OnActive_ON_ACTIVE_STEER, RequestId: key,
		})
		return err
	}, nil
}

func (s *eventsServer) cancel(session, turn string) send {
	return func(c *request, key string) error {
		ctx, cancel := s.within(c)
		defer cancel()
		_, err := s.wire.Sessions.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: session, Turn: turn, RequestId: key})
		return err
	}
}

// unknownCall refuses a result as clients expect it: they ask again for a while.
func unknownCall(call string) error {
	return apierr.New(codes.InvalidArgument, problem.Domain, ReasonUnknownCall, "Unknown pending tool call: "+call)
}

func (s *eventsServer) toolResult(c *request, session string, e inputEvent, field string) (send, error) {
	turn, _, _ := strings.Cut(e.Call, ".")
	switch {
	case e.Call == "":
		return nil, resource.Bad(field+".call_id", "it is required")
	case e.Success == nil:
		return nil, resource.Bad(field+".success", "it is required")
	case e.Turn != "" && e.Turn != turn:
		return nil, unknownCall(e.Call)
	}
	content, err := contents(e.Output, field+".output")
	if err != nil {
		return nil, err
	}
	if !*e.Success && e.Error != nil && *e.Error != "" {
		content = append(content, textOf(*e.Error))
	}
	if answer, err := s.wire.AskAnswer(c.R.Context(), session, e.Call, content, !*e.Success); errors.Is(err, wire.ErrForm) {
		return nil, resource.Bad(field+".output", err.Error())
	} else if answer != nil || err != nil {
		return s.answer(answer), err
	}
	return func(c *request, key string) error {
		ctx, cancel := s.within(c)
		defer cancel()
		_, err := s.wire.Sessions.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: session, CallId: e.Call, Content: content, IsError: !*e.Success, RequestId: key})
		for _, reason := range []sessionv1.ErrorReason{sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING} {
			if apierr.Is(err, reason) {
				return unknownCall(e.Call)
			}
		}
		return err
	}, nil
}

// answer returns what answers a question.
func (s *eventsServer) answer(req *sessionv1.AnswerQuestionRequest) send {
	return func(c *request, key string) error {
		ctx, cancel := s.within(c)
		defer cancel()
		req.RequestId = key
		_, err := s.wire.Sessions.AnswerQuestion(ctx, req)
		return err
	}
}

// decided returns what answers the question whether a call may run.
func (s *eventsServer) decided(c *request, session string, e inputEvent, field string) (send, error) {
	call, ok := strings.CutPrefix(e.Request, approvalPrefix)
	turn, _, _ := strings.Cut(call, ".")
	field += ".response.decision"
	switch e.Answer.Decision {
	case "approve", "deny":
	case "cancel":
		if ok && turn != "" {
			return s.cancel(session, session+"/turns/"+turn), nil
		}
	default:
		return nil, resource.Bad(field, problem.Excerpt(e.Answer.Decision)+" is none of approve, deny and cancel")
	}
	unknown := resource.Bad("request_id", problem.Excerpt(e.Request)+" is no approval that this session has asked for")
	if !ok || turn == "" {
		return nil, unknown
	}
	asked, err := s.wire.Asked(c.R.Context(), session, turn, call)
	if err != nil {
		return nil, err
	}
	if asked == nil {
		return nil, unknown
	}
	req := &sessionv1.ResolveApprovalRequest{Parent: session, CallId: call, Digest: asked.GetDigest(), Approved: e.Answer.Decision == "approve"}
	return func(c *request, key string) error {
		ctx, cancel := s.within(c)
		defer cancel()
		req.RequestId = key
		_, err := s.wire.Sessions.ResolveApproval(ctx, req)
		return err
	}, nil
}

// inputOf returns what a new session is told: a text, or messages.
func inputOf(raw json.RawMessage) ([]*commonv1.Content, error) {
	var text string
	if len(raw) > 0 && json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" && string(raw) != "null" {
			return nil, resource.Bad("input", "it is empty")
		}
		if text == "" {
			return nil, nil
		}
		return []*commonv1.Content{textOf(text)}, nil
	}
	return messages(raw, "input")
}

func textOf(text string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}
}

// messages returns the content of messages of the user.
func messages(raw json.RawMessage, field string) (out []*commonv1.Content, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var in []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil, resource.Bad(field, "it is no list of messages")
	}
	if err := wire.TooMany(field, len(in), wire.MostContent); err != nil {
		return nil, err
	}
	for i, m := range in {
		place := fmt.Sprintf("%s[%d]", field, i)
		if m.Role != "user" {
			return nil, resource.Bad(place+".role", problem.Excerpt(m.Role)+" is not served, only user")
		}
		content, err := contents(m.Content, place+".content")
		if err != nil {
			return nil, err
		}
		out = append(out, content...)
	}
	return out, nil
}

// contents returns content in our terms: a text, or parts.
func contents(raw json.RawMessage, field string) (out []*commonv1.Content, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []*commonv1.Content{textOf(text)}, nil
	}
	var in []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		URL  string `json:"image_url"`
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil, resource.Bad(field, "it is neither a text nor a list of parts")
	}
	if err := wire.TooMany(field, len(in), wire.MostContent); err != nil {
		return nil, err
	}
	for i, p := range in {
		place := fmt.Sprintf("%s[%d]", field, i)
		switch p.Type {
		case "input_text":
			if p.Text == "" {
				return nil, resource.Bad(place+".text", "it is empty")
			}
			out = append(out, textOf(p.Text))
		case "input_image":
			m, err := image(p.URL, place+".image_url")
			if err != nil {
				return nil, err
			}
			out = append(out, &commonv1.Content{Kind: &commonv1.Content_Image{Image: m}})
		default:
			return nil, resource.Bad(place+".type", problem.Excerpt(p.Type)+" is neither input_text nor input_image")
		}
	}
	return out, nil
}

// image returns an image of a data URL, or one that Fairlead has.
func image(url, field string) (*commonv1.Media, error) {
	if strings.HasPrefix(url, "file://") || strings.HasPrefix(url, "workspace://") {
		return &commonv1.Media{Uri: url}, nil
	}
	head, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	kind, encoded := strings.CutSuffix(head, ";base64")
	if !ok || !encoded || !strings.HasPrefix(url, "data:") {
		return nil, resource.Bad(field, "only data URLs (data:image/png;base64,…), file:// and workspace:// are served: Fairlead fetches nothing from elsewhere")
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, resource.Bad(field, "it is not base64")
	}
	return &commonv1.Media{MediaType: kind, Data: b}, nil
}
