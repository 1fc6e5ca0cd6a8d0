package managed

import (
	"errors"
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// send is an event of a request, after it has been checked: it has its effect and returns the event as answers have it.
type send func(c *request, key string) (map[string]any, error)

// sendEvents takes the events that a client sends. All are checked before one has an effect.
func (s *eventsServer) sendEvents(c *request) (any, error) {
	var in struct {
		Events []userEvent `json:"events"`
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
	d := sessionDocOf(x)
	var all []send
	for i, e := range in.Events {
		field := fmt.Sprintf("events[%d]", i)
		if len(c.queues) > 0 && e.Type != "user.tool_result" && e.Type != "user.custom_tool_result" {
			return nil, notWorker(field + ".type: the key of an environment sends results of tools alone; use an API key for " + problem.Excerpt(e.Type))
		}
		do, err := s.prepare(c, x.GetName(), e, field, d)
		if e.Type == "user.interrupt" && i+1 < len(in.Events) && in.Events[i+1].Type == "user.message" {
			do = replaced(x) // by the message, in one step: the session is not idle in between
		} else if err == nil && i > 0 && in.Events[i-1].Type == "user.interrupt" && e.Type == "user.message" {
			do, err = s.said(x.GetName(), e, field, d, sessionv1.OnActive_ON_ACTIVE_INTERRUPT)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, do)
	}
	data := []any{}
	for i, do := range all {
		event, err := do(c, c.Part(i))
		if err != nil {
			return nil, err
		}
		data = append(data, event)
	}
	return map[string]any{"data": data}, nil
}

// prepare checks an event.
func (s *eventsServer) prepare(c *request, session string, e userEvent, field string, d *sessionDoc) (send, error) {
	switch e.Type {
	case "user.message":
		return s.said(session, e, field, d, sessionv1.OnActive_ON_ACTIVE_QUEUE)
	case "user.interrupt":
		return func(c *request, key string) (map[string]any, error) {
			ctx, cancel := s.within(c)
			defer cancel()
			stopped, err := s.wire.Sessions.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: session, RequestId: key})
			if err != nil {
				return nil, err
			}
			id := interruptID(stopped.GetTurn())
			if stopped.GetTurn() == "" {
				id = interruptID(key) // nothing was to be stopped
			}
			return echo(e.Type, id), nil
		}, nil
	case "user.tool_confirmation":
		return s.confirmation(c, session, e, field)
	case "user.custom_tool_result":
		return s.toolResult(c, session, e, e.CustomToolUse, "custom_tool_use_id", field)
	case "user.tool_result":
		if !d.Hosted {
			return nil, resource.Bad(field+".type", "user.tool_result is for sessions of self_hosted environments; Fairlead runs this session's tools itself")
		}
		return s.toolResult(c, session, e, e.ToolUse, "tool_use_id", field)
	case "user.define_outcome":
		return nil, resource.Bad(field+".type", "outcomes are not served")
	}
	return nil, resource.Bad(field+".type", problem.Excerpt(e.Type)+" is not served; the types are user.message, user.interrupt, user.tool_confirmation, user.custom_tool_result and user.tool_result")
}

// said returns what sends a user's message.
func (s *eventsServer) said(session string, e userEvent, field string, d *sessionDoc, on sessionv1.OnActive) (send, error) {
	turn, err := e.message(field, d)
	if err != nil {
		return nil, err
	}
	turn.Parent, turn.OnActive = session, on
	return func(c *request, key string) (map[string]any, error) {
		ctx, cancel := s.within(c)
		defer cancel()
		turn.RequestId = key
		made, err := s.wire.Sessions.CreateTurn(ctx, turn)
		if err != nil {
			return nil, err
		}
		return map[string]any{"type": e.Type, "id": messageID(made.GetTurn().GetName()), "processed_at": nil, "content": blocks(turn.GetContent())}, nil
	}, nil
}

// replaced answers an interrupt that the message after it brings about.
func replaced(x *sessionv1.Session) send {
	return func(_ *request, key string) (map[string]any, error) {
		id := key // nothing is to be stopped
		if x.GetActiveTurn() != "" {
			id = x.GetActiveTurn()
		}
		return echo("user.interrupt", interruptID(id)), nil
	}
}

// echo returns an event that takes effect when it arrives.
func echo(kind, id string) map[string]any {
	return map[string]any{"type": kind, "id": id, "processed_at": stamp(time.Now())}
}

func (s *eventsServer) confirmation(c *request, session string, e userEvent, field string) (send, error) {
	call, err := callOf(e.ToolUse, field+".tool_use_id")
	if err != nil {
		return nil, err
	}
	if e.Result != "allow" && e.Result != "deny" {
		return nil, resource.Bad(field+".result", problem.Excerpt(e.Result)+" is neither allow nor deny")
	}
	req := &sessionv1.ResolveApprovalRequest{Parent: session, CallId: call, Approved: e.Result == "allow"}
	if e.DenyMessage != nil {
		if req.Approved {
			return nil, resource.Bad(field+".deny_message", "it goes with the result deny alone")
		}
		req.Comment = *e.DenyMessage
	}
	if req.Digest, err = s.digest(c, session, call, field); err != nil {
		return nil, err
	}
	return func(c *request, key string) (map[string]any, error) {
		ctx, cancel := s.within(c)
		defer cancel()
		req.RequestId = key
		if _, err := s.wire.Sessions.ResolveApproval(ctx, req); err != nil {
			return nil, err
		}
		out := echo(e.Type, confirmationID(call))
		out["tool_use_id"], out["result"] = e.ToolUse, e.Result
		if e.DenyMessage != nil {
			out["deny_message"] = *e.DenyMessage
		}
		return out, nil
	}, nil
}

// digest returns the digest of the arguments that a person is asked about. A call's id begins with that of its turn.
func (s *eventsServer) digest(c *request, session, call, field string) (string, error) {
	turn, _, _ := strings.Cut(call, ".")
	asked, err := s.wire.Asked(c.R.Context(), session, turn, call)
	if err != nil {
		return "", err
	}
	if asked == nil {
		return "", resource.Bad(field+".tool_use_id", "no call with this id waits for a confirmation")
	}
	return asked.GetDigest(), nil
}

// toolResult returns what sends the result of a tool that the client or a worker has run. The name is that of the field with the call.
func (s *eventsServer) toolResult(c *request, session string, e userEvent, use, name, field string) (send, error) {
	call, err := callOf(use, field+"."+name)
	if err != nil {
		return nil, err
	}
	content, err := contents(e.Content, field+".content")
	if err != nil {
		return nil, err
	}
	answer, err := s.wire.AskAnswer(c.R.Context(), session, call, content, e.IsError)
	switch {
	case errors.Is(err, wire.ErrForm):
		return nil, resource.Bad(field+".content", err.Error())
	case err != nil:
		return nil, err
	case answer != nil && len(c.queues) > 0:
		return nil, notWorker(field + "." + name + ": a person answers a question, with an API key")
	}
	return func(c *request, key string) (map[string]any, error) {
		ctx, cancel := s.within(c)
		defer cancel()
		var err error
		if answer != nil {
			answer.RequestId = key
			_, err = s.wire.Sessions.AnswerQuestion(ctx, answer)
		} else {
			_, err = s.wire.Sessions.SubmitToolResult(ctx, &sessionv1.SubmitToolResultRequest{Parent: session, CallId: call, Content: content, IsError: e.IsError, RequestId: key})
		}
		if err != nil {
			return nil, err
		}
		out := echo(e.Type, resultID(call))
		out[name], out["content"], out["is_error"] = use, blocks(content), e.IsError
		return out, nil
	}, nil
}
