package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// decision is the data of a part that answers something.
type decision struct {
	// Call and Question name what is answered; both may be left out if one thing is asked.
	Call     string `json:"call"`
	Question string `json:"question"`
	// Decision answers an approval: approve or deny.
	Decision  string          `json:"decision"`
	Comment   string          `json:"comment"`
	Scope     string          `json:"scope"`
	Rule      string          `json:"rule"`
	Mode      string          `json:"mode"`
	Arguments json.RawMessage `json:"arguments"`
	// Action answers a question: accept, with Content, decline or cancel.
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`

	field, text string
}

var (
	scopes = map[string]commonv1.ApprovalScope{
		"": commonv1.ApprovalScope_APPROVAL_SCOPE_UNSPECIFIED, "once": commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE,
		"session": commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION, "always": commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS,
	}
	modes = map[string]commonv1.PermissionMode{
		"": commonv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED, "default": commonv1.PermissionMode_PERMISSION_MODE_DEFAULT,
		"accept_edits": commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS,
	}
	actions = map[string]commonv1.QuestionAction{
		"accept": commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, "decline": commonv1.QuestionAction_QUESTION_ACTION_DECLINE,
		"cancel": commonv1.QuestionAction_QUESTION_ACTION_CANCEL,
	}
)

// reply is a request that answers something.
type reply struct {
	to   *ask
	send func(ctx context.Context) error
}

// reply answers what a task asks for. Everything is checked before anything has an effect.
func (c *call) reply(ctx context.Context, b *begun) error {
	m := b.in.Message
	f, turn, err := c.find(ctx, m.TaskID, nil)
	if err != nil {
		return err
	}
	if m.ContextID != "" && m.ContextID != f.context {
		return bad("message.contextId", "is not the context of the task "+m.TaskID)
	}
	given, err := decisions(m)
	if err != nil {
		return err
	}
	open := f.open()
	if len(open) == 0 {
		open = f.latest() // the message may have come before
	}
	if len(open) == 0 {
		return c.notAsked(f)
	}
	var answers []*reply
	answered := map[string]bool{}
	for _, d := range given {
		r, err := c.answer(m, d, f, open)
		if err != nil {
			return err
		}
		if answered[r.to.key()] {
			return bad(d.field, "answers what another part answers")
		}
		answers, answered[r.to.key()] = append(answers, r), true
	}
	for _, r := range answers {
		switch err := r.send(ctx); {
		case err == nil:
		case apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED) && !r.to.resolved:
			delete(answered, r.to.key()) // the message has answered what was asked before, and answers nothing else
		case late(err):
			return c.notAsked(f)
		default:
			return err
		}
	}
	b.after, b.answers = turn.GetAfterSeq(), answered
	b.fold, _, err = c.find(ctx, m.TaskID, answered)
	return err
}

// late reports whether an answer came too late, or was another one.
func late(err error) bool {
	for _, r := range []sessionv1.ErrorReason{
		sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING,
	} {
		if apierr.Is(err, r) {
			return true
		}
	}
	return false
}

// notAsked refuses a message to a task that asks for nothing.
func (c *call) notAsked(f *fold) error {
	if terminal(f.status.State) {
		return fail(unsupported, "the task "+f.id()+" has ended; leave out taskId, so that the message begins the next task of the context")
	}
	return fail(unsupported, "the task "+f.id()+" asks for nothing now; leave out taskId, so that the message begins the next task of the context")
}

// latest returns what was asked last.
func (f *fold) latest() []*ask {
	if len(f.asked) == 0 {
		return nil
	}
	return f.asked[len(f.asked)-1:]
}

// decisions reads what the parts of a message answer. Texts beside one part of data are its comment.
func decisions(m *message) (all []*decision, err error) {
	var texts []string
	for i, p := range m.Parts {
		field := fmt.Sprintf("message.parts[%d]", i)
		switch {
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case len(p.Data) > 0:
			d := &decision{field: field + ".data"}
			if err := wire.DecodeJSON(p.Data, d); err != nil {
				return nil, bad(field+".data", `is no answer: it has to be an object such as {"decision": "approve"}`)
			}
			all = append(all, d)
		default:
			return nil, bad(field, "is neither data nor text, which an answer has to be")
		}
	}
	text := strings.Join(texts, "\n")
	if len(all) == 0 {
		return []*decision{{field: "message.parts", text: text}}, nil
	}
	if len(all) == 1 && all[0].Comment == "" {
		all[0].Comment = text
	}
	return all, nil
}

// answer returns the request for one answer to what is open. Its id is that of the message: a message that comes again
// does not answer what is asked by then.
func (c *call) answer(m *message, d *decision, f *fold, open []*ask) (*reply, error) {
	a, err := d.choose(f, open)
	if err != nil {
		return nil, err
	}
	id := wire.RequestID("a2a", m.TaskID, m.MessageID, d.field)
	if a.Question != nil {
		req, err := d.toQuestion(a)
		if err != nil {
			return nil, err
		}
		req.RequestId = id
		return &reply{a, func(ctx context.Context) error { _, err := c.wire.Sessions.AnswerQuestion(ctx, req); return err }}, nil
	}
	req, err := d.toApproval(a)
	if err != nil {
		return nil, err
	}
	req.RequestId = id
	return &reply{a, func(ctx context.Context) error { _, err := c.wire.Sessions.ResolveApproval(ctx, req); return err }}, nil
}

// choose returns what a decision answers. One that names what was asked before may be of a message that comes again.
func (d *decision) choose(f *fold, open []*ask) (*ask, error) {
	other := func(a *ask) bool {
		return d.Call != "" && d.Call != a.Call || d.Question != "" && d.Question != a.Question.GetQuestion().GetId()
	}
	named := slices.DeleteFunc(slices.Clone(open), other)
	if before := slices.DeleteFunc(slices.Clone(f.asked), other); len(named) == 0 && len(before) > 0 {
		named = before[len(before)-1:]
	}
	switch {
	case len(named) == 0:
		return nil, bad(d.field, "names a call or a question that is not asked")
	case len(named) > 1:
		return nil, bad(d.field, "has to name the call that it answers: several are asked, "+keyOf(named))
	case d.Call == "" && d.Decision != "" && slices.ContainsFunc(f.asked, func(a *ask) bool { return a.session != named[0].session }):
		// A session remembers only its own requests, so a message that comes again would count as new.
		return nil, bad(d.field, "has to name the call that it answers, because several agents have asked: "+named[0].Call)
	}
	return named[0], nil
}

// toApproval returns the request that answers an approval.
func (d *decision) toApproval(a *ask) (*sessionv1.ResolveApprovalRequest, error) {
	if d.Decision != "approve" && d.Decision != "deny" {
		return nil, bad(d.field, `does not say whether the call may run: the task waits for a part with the data {"decision": "approve"} or {"decision": "deny"}`)
	}
	scope, ok := scopes[strings.ToLower(d.Scope)]
	if !ok {
		return nil, bad(d.field+".scope", "is none of once, session and always")
	}
	mode, ok := modes[strings.ToLower(d.Mode)]
	if !ok {
		return nil, bad(d.field+".mode", "is none of default and accept_edits")
	}
	req := &sessionv1.ResolveApprovalRequest{
		Parent: a.session, CallId: a.Call, Digest: a.Approval.GetDigest(), Approved: d.Decision == "approve",
		Comment: d.Comment, Scope: scope, Rule: d.Rule, Mode: mode,
	}
	if len(d.Arguments) > 0 && string(d.Arguments) != "null" {
		if !strings.HasPrefix(string(d.Arguments), "{") {
			return nil, bad(d.field+".arguments", "is no JSON object")
		}
		req.UpdatedArgumentsJson = string(d.Arguments)
	}
	return req, nil
}

// toQuestion returns the request that answers a question.
func (d *decision) toQuestion(a *ask) (*sessionv1.AnswerQuestionRequest, error) {
	q := a.Question.GetQuestion()
	req := &sessionv1.AnswerQuestionRequest{
		Parent: a.session, CallId: a.Call, QuestionId: q.GetId(), Action: commonv1.QuestionAction_QUESTION_ACTION_ACCEPT,
	}
	if d.text != "" {
		switch {
		case q.GetUrl() != "": // the client says that its person has been there
		case len(q.GetItems()) == 1:
			b, err := json.Marshal(object{"answers": object{q.GetItems()[0].GetQuestion(): d.text}})
			if err != nil {
				return nil, err
			}
			req.ContentJson = string(b)
		default:
			return nil, bad(d.field, `is a text, which cannot answer a form: send a part with the data {"action": "accept", "content": {…}}`)
		}
		return req, nil
	}
	action, ok := actions[strings.ToLower(d.Action)]
	if !ok {
		return nil, bad(d.field+".action", "is none of accept, decline and cancel")
	}
	req.Action = action
	if len(d.Content) > 0 && string(d.Content) != "null" {
		if action != commonv1.QuestionAction_QUESTION_ACTION_ACCEPT || !strings.HasPrefix(string(d.Content), "{") {
			return nil, bad(d.field+".content", "has to be a JSON object, and goes with the action accept alone")
		}
		req.ContentJson = string(d.Content)
	}
	return req, nil
}
