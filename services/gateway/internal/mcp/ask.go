package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// argumentsShown is how much of the arguments a question shows, in characters.
const argumentsShown = 2000

// asked is what a call waits for: an approval, or the answer to a question.
type asked struct {
	Call, Tool string
	Digest     string             // of an approval
	Question   *commonv1.Question `json:",omitempty"`

	approval *sessionv1.ApprovalRequested
}

// id returns what an answer names.
func (a asked) id() string { return a.Call + " " + a.Question.GetId() }

// params returns what a client shows to a person.
func (a asked) params() *sdk.ElicitParams {
	if a.Question == nil {
		return &sdk.ElicitParams{
			Mode:    "form",
			Message: fmt.Sprintf("May %s run with these arguments?\n%s", a.Tool, cut(a.approval.GetArgumentsJson(), argumentsShown)),
			// To accept is the whole answer.
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		}
	}
	switch q := a.Question; {
	case q.GetUrl() != "":
		return &sdk.ElicitParams{Mode: "url", Message: q.GetMessage(), URL: q.GetUrl(), ElicitationID: q.GetId()}
	case q.GetSchemaJson() != "":
		return &sdk.ElicitParams{Mode: "form", Message: q.GetMessage(), RequestedSchema: json.RawMessage(q.GetSchemaJson())}
	default:
		return &sdk.ElicitParams{Mode: "form", Message: cmp.Or(q.GetMessage(), "The agent asks."), RequestedSchema: formOf(q.GetItems())}
	}
}

// formOf returns the form of questions with options: fields q1, q2 and so on.
func formOf(items []*commonv1.QuestionItem) map[string]any {
	fields, required := map[string]any{}, []string{}
	for i, item := range items {
		var labels []string
		for _, o := range item.GetOptions() {
			labels = append(labels, o.GetLabel())
		}
		field := map[string]any{"type": "string", "enum": labels}
		if item.GetMultiple() {
			field = map[string]any{"type": "array", "items": field}
		}
		field["title"], field["description"] = item.GetHeader(), item.GetQuestion()
		name := fmt.Sprintf("q%d", i+1)
		fields[name], required = field, append(required, name)
	}
	return map[string]any{"type": "object", "properties": fields, "required": required}
}

// content returns the answer of a person to a question, as JSON.
func (a asked) content(answer *sdk.ElicitResult) (string, error) {
	var content any = answer.Content
	if a.Question.GetUrl() == "" && a.Question.GetSchemaJson() == "" {
		answers := map[string]any{}
		for i, item := range a.Question.GetItems() {
			if v, ok := answer.Content[fmt.Sprintf("q%d", i+1)]; ok {
				answers[item.GetQuestion()] = v
			}
		}
		content = map[string]any{"answers": answers}
	}
	if a.Question.GetUrl() != "" || answer.Action != "accept" {
		return "", nil
	}
	b, err := json.Marshal(content)
	return string(b), err
}

// elicits reports whether the client can ask a person this.
func (c *calling) elicits(p *sdk.ElicitParams) bool {
	capabilities := c.req.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil {
		return false
	}
	e := capabilities.Elicitation
	if p.Mode == "url" {
		return e.URL != nil
	}
	return e.Form != nil || e.URL == nil // an empty object stands for forms
}

// ask tells the client what the call waits for. A client with a session of the protocol is asked over it.
func (c *calling) ask(a asked) {
	c.asked[a.id()] = a
	if a.Question == nil {
		c.progress(fmt.Sprintf("%s waits for a person's approval (rule: %s). It can be given here, or elsewhere: POST /v1/%s/approvals:resolve with callId %s and digest %s.",
			a.Tool, a.approval.GetRule(), c.request.Parent, a.Call, a.Digest))
	} else {
		c.progress(fmt.Sprintf("%s waits for an answer: %s It can be given here, or elsewhere: call %s, question %s of %s.",
			a.Tool, cut(a.Question.GetMessage(), 500), a.Call, a.Question.GetId(), c.request.Parent))
	}
	params := a.params()
	if !c.live() || !c.elicits(params) {
		return
	}
	ctx, settle := context.WithCancel(c.ctx)
	c.settled[a.id()] = settle
	c.asking.Go(func() {
		answer, err := c.req.Session.Elicit(ctx, params)
		switch {
		case ctx.Err() != nil: // answered elsewhere, or the call has ended
		case err != nil:
			c.s.log.InfoContext(ctx, "an MCP client did not answer; the call waits for another answer", "turn", c.turn, "error", err)
		default:
			if err := c.resolve(c.out, a, answer); err != nil { //nolint:contextcheck // it is the caller's
				c.s.log.WarnContext(ctx, "the answer of an MCP client was not accepted", "turn", c.turn, "error", err)
			}
		}
	})
}

// resolved takes a question back.
func (c *calling) resolved(a asked) {
	delete(c.asked, a.id())
	if settle := c.settled[a.id()]; settle != nil {
		settle()
	}
}

// actions are what a person may do with a question.
var actions = map[string]commonv1.QuestionAction{
	"accept": commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, "decline": commonv1.QuestionAction_QUESTION_ACTION_DECLINE,
	"cancel": commonv1.QuestionAction_QUESTION_ACTION_CANCEL,
}

// resolve answers as the client's person did. Who closes the question of an approval refuses.
func (c *calling) resolve(ctx context.Context, a asked, answer *sdk.ElicitResult) error {
	content, err := a.content(answer)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(a.id() + "\x00" + a.Digest + "\x00" + answer.Action + content))
	key := fmt.Sprintf("mcp-%x", sum[:16])
	if a.Question != nil {
		_, err = c.s.sessions.AnswerQuestion(ctx, &sessionv1.AnswerQuestionRequest{
			Parent: c.request.Parent, CallId: a.Call, QuestionId: a.Question.GetId(), Action: actions[answer.Action], ContentJson: content, RequestId: key,
		})
	} else {
		_, err = c.s.sessions.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{
			Parent: c.request.Parent, CallId: a.Call, Digest: a.Digest, Approved: answer.Action == "accept", RequestId: key,
		})
	}
	if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) {
		return nil // by another, and the call's result says how
	}
	return err
}

// inputRequired returns the result by which a client of a modern revision is asked; nil if it cannot be, and the call
// waits for an answer that comes another way.
func (c *calling) inputRequired() *sdk.CallToolResult {
	p, ok := principal.From(c.out)
	if !ok || !c.modern() {
		return nil
	}
	for _, a := range c.asked {
		params := a.params()
		if !c.elicits(params) {
			continue
		}
		state, err := c.s.seal(requestState{
			Tenant: p.Tenant, User: p.User, Session: c.request.Parent, Turn: c.turn, Tool: c.request.Tool, Arguments: sha256.Sum256([]byte(c.request.ArgumentsJson)),
			Asked: a, RequestID: c.request.RequestId, AfterSeq: c.request.AfterSeq, Expires: time.Now().Add(stateTime).Unix(),
		})
		if err != nil {
			c.s.log.WarnContext(c.ctx, "cannot ask an MCP client", "turn", c.turn, "error", err)
			return nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{a.key(): params}, RequestState: state}
	}
	return nil
}

// key returns the key of the one question of a result: the name that the server which asks gives it.
func (a asked) key() string { return cmp.Or(a.Question.GetKey(), "answer") }

// answered takes the client's answer, and makes the request attach to the call that waits for it.
func (c *calling) answered() error {
	state, err := c.s.open(c.req.Params.RequestState)
	p, _ := principal.From(c.out)
	switch {
	case err != nil:
		return invalid("requestState " + err.Error())
	case state.Tenant != p.Tenant || state.User != p.User || state.Session != c.request.Parent || state.Tool != c.request.Tool ||
		state.Arguments != sha256.Sum256([]byte(c.request.ArgumentsJson)):
		return invalid("requestState is of another call")
	case time.Now().Unix() > state.Expires:
		return invalid("requestState has expired; the call still waits for its answer, or has ended")
	}
	c.turn, c.request.RequestId, c.request.AfterSeq = state.Turn, state.RequestID, state.AfterSeq
	answer, ok := c.req.Params.InputResponses[state.Asked.key()].(*sdk.ElicitResult)
	if !ok {
		return invalid("inputResponses has no answer to " + state.Asked.key())
	}
	ctx, cancel := context.WithTimeout(c.out, c.s.Timeout)
	defer cancel()
	err = c.resolve(ctx, state.Asked, answer)
	if code := apierr.Code(err); err != nil && (code == codes.NotFound || code == codes.FailedPrecondition || code == codes.PermissionDenied) {
		return invalid(apierr.Message(err))
	}
	return err
}

func invalid(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
