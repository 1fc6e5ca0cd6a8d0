package agui

import (
	"context"
	"encoding/json"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// approvalPayload is the answer to an approval.
type approvalPayload struct {
	Approved   *bool           `json:"approved"`
	EditedArgs json.RawMessage `json:"editedArgs"`
	Comment    string          `json:"comment"`
	Scope      string          `json:"scope"`
	Rule       string          `json:"rule"`
	Mode       string          `json:"mode"`
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
		"": commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, "accept": commonv1.QuestionAction_QUESTION_ACTION_ACCEPT,
		"decline": commonv1.QuestionAction_QUESTION_ACTION_DECLINE, "cancel": commonv1.QuestionAction_QUESTION_ACTION_CANCEL,
	}
)

// approval returns the request that answers an approval.
func (r resumeEntry) approval(field, session string, a *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
	req := &sessionv1.ResolveApprovalRequest{Parent: session, CallId: a.GetCallId(), Digest: a.GetDigest()}
	if r.Status == "cancelled" {
		req.Comment = "The user left the question unanswered."
		return req, nil
	}
	var p approvalPayload
	if err := json.Unmarshal(r.Payload, &p); err != nil || p.Approved == nil {
		return nil, bad(field+".payload", `is no answer to an approval: it has to be an object such as {"approved": true}`)
	}
	scope, ok := scopes[strings.ToLower(p.Scope)]
	if !ok {
		return nil, bad(field+".payload.scope", "is none of once, session and always")
	}
	mode, ok := modes[strings.ToLower(p.Mode)]
	if !ok {
		return nil, bad(field+".payload.mode", "is none of default and accept_edits")
	}
	req.Approved, req.Comment, req.Scope, req.Rule, req.Mode = *p.Approved, p.Comment, scope, p.Rule, mode
	if len(p.EditedArgs) > 0 && string(p.EditedArgs) != "null" {
		if !strings.HasPrefix(strings.TrimSpace(string(p.EditedArgs)), "{") {
			return nil, bad(field+".payload.editedArgs", "is no JSON object")
		}
		req.UpdatedArgumentsJson = string(p.EditedArgs)
	}
	return req, nil
}

// question returns the request that answers a question.
func (r resumeEntry) question(field, session string, q *sessionv1.QuestionRequested) (*sessionv1.AnswerQuestionRequest, error) {
	req := &sessionv1.AnswerQuestionRequest{Parent: session, CallId: q.GetCallId(), QuestionId: q.GetQuestion().GetId()}
	if r.Status == "cancelled" {
		req.Action = commonv1.QuestionAction_QUESTION_ACTION_CANCEL
		return req, nil
	}
	action, ok := actions[strings.ToLower(r.Metadata.Action)]
	if !ok {
		return nil, bad(field+".metadata.action", "is none of accept, decline and cancel")
	}
	req.Action = action
	if action == commonv1.QuestionAction_QUESTION_ACTION_ACCEPT && len(r.Payload) > 0 && string(r.Payload) != "null" {
		if !strings.HasPrefix(strings.TrimSpace(string(r.Payload)), "{") {
			return nil, bad(field+".payload", "is no JSON object")
		}
		req.ContentJson = string(r.Payload)
	}
	return req, nil
}

// answer is a request that answers something.
type answer func(ctx context.Context) error

// answered returns nil for an answer that came too late: the log says what counts.
func answered(err error) error {
	if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) {
		return nil
	}
	return err
}

// resolve returns what answers one interrupt.
func (s *Server) resolve(field, runID string, r resumeEntry, a *ask, session string) (answer, error) {
	id := wire.RequestID("ag-ui", runID, r.InterruptID)
	if a.question != nil {
		req, err := r.question(field, session, a.question)
		if err != nil {
			return nil, err
		}
		req.RequestId = id
		return func(ctx context.Context) error {
			_, err := s.wire.Sessions.AnswerQuestion(ctx, req)
			return answered(err)
		}, nil
	}
	req, err := r.approval(field, session, a.approval)
	if err != nil {
		return nil, err
	}
	req.RequestId = id
	return func(ctx context.Context) error {
		_, err := s.wire.Sessions.ResolveApproval(ctx, req)
		return answered(err)
	}, nil
}

// submit returns what brings the result of a client's tool.
func (s *Server) submit(runID, session string, m *inMessage) (answer, error) {
	req := &sessionv1.SubmitToolResultRequest{Parent: session, CallId: m.ToolCallID, IsError: m.Error != "", RequestId: wire.RequestID("ag-ui", runID, m.ToolCallID)}
	var err error
	if req.Content, err = contents("messages.content", m.Content); err != nil {
		return nil, err
	}
	if m.Error != "" {
		req.Content = append(req.Content, textContent(m.Error)...)
	}
	return func(ctx context.Context) error {
		_, err := s.wire.Sessions.SubmitToolResult(ctx, req)
		return answered(err)
	}, nil
}
