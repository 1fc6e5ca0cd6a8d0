package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/answer"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// InterruptSession puts an interrupt into the inbox.
func (s *SessionServer) InterruptSession(
	ctx context.Context, r *sessionv1.InterruptSessionRequest,
) (*sessionv1.InterruptSessionResponse, error) {
	only, ok := strings.CutPrefix(r.Turn, r.Name+"/turns/")
	if !ok && r.Turn != "" {
		return nil, refusal.Input("turn", fmt.Sprintf("%s is not a turn of %s.", r.Turn, r.Name))
	}
	if only != "" && r.CancelQueued {
		return nil, refusal.Input("turn", "An interrupt of one turn cannot cancel the queued turns too. Leave turn or cancel_queued out.")
	}
	answer, err := s.command(ctx, r.Name, "InterruptSession", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandInterrupt, TurnID: only}, CancelQueued: r.CancelQueued,
	})
	if err != nil {
		return nil, err
	}
	resp := &sessionv1.InterruptSessionResponse{}
	if answer.Value != "" {
		resp.Turn = r.Name + "/turns/" + answer.Value
	}
	return resp, nil
}

// SetPermissionMode puts the request for another permission mode into the inbox.
func (s *SessionServer) SetPermissionMode(
	ctx context.Context, r *sessionv1.SetPermissionModeRequest,
) (*sessionv1.SetPermissionModeResponse, error) {
	only, ok := strings.CutPrefix(r.Turn, r.Name+"/turns/")
	if !ok && r.Turn != "" {
		return nil, refusal.Input("turn", fmt.Sprintf("%s is not a turn of %s.", r.Turn, r.Name))
	}
	if r.PermissionMode == commonv1.PermissionMode_PERMISSION_MODE_BYPASS {
		spec, err := s.Directory.Pinned(ctx, request.Key(ctx, r.Name), r.Name)
		if err != nil {
			return nil, err
		}
		if err := s.Submit.CheckBypass(ctx, spec, "permission_mode"); err != nil {
			return nil, err
		}
	}
	answer, err := s.command(ctx, r.Name, "SetPermissionMode", r.RequestId, r, store.Submit{Command: store.Command{Kind: store.CommandMode, TurnID: only}})
	if err != nil {
		return nil, err
	}
	return &sessionv1.SetPermissionModeResponse{Turn: r.Name + "/turns/" + answer.Value}, nil
}

// CompactSession puts a request to shorten the model's view into the inbox.
func (s *SessionServer) CompactSession(ctx context.Context, r *sessionv1.CompactSessionRequest) (*sessionv1.CompactSessionResponse, error) {
	_, err := s.command(ctx, r.Name, "CompactSession", r.RequestId, r, store.Submit{Command: store.Command{Kind: store.CommandCompact}})
	return &sessionv1.CompactSessionResponse{}, err
}

// ResolveApproval puts a person's answer into the inbox.
func (s *SessionServer) ResolveApproval(
	ctx context.Context, r *sessionv1.ResolveApprovalRequest,
) (*sessionv1.ResolveApprovalResponse, error) {
	if err := s.answers.Approval(ctx, r); err != nil {
		return nil, err
	}
	return &sessionv1.ResolveApprovalResponse{}, s.answer(ctx, "ResolveApproval", r, store.Submit{
		Command: store.Command{Kind: store.CommandApproval, CallID: r.CallId}, Digest: r.Digest,
	}, answer.Given{Session: r.Parent, Call: r.CallId, RequestID: r.RequestId, Approval: r})
}

// AnswerQuestion puts a person's answer to a question into the inbox.
func (s *SessionServer) AnswerQuestion(ctx context.Context, r *sessionv1.AnswerQuestionRequest) (*sessionv1.AnswerQuestionResponse, error) {
	if err := s.answers.Question(ctx, r); err != nil {
		return nil, err
	}
	return &sessionv1.AnswerQuestionResponse{}, s.answer(ctx, "AnswerQuestion", r, store.Submit{
		Command: store.Command{Kind: store.CommandAnswer, CallID: r.CallId}, Digest: r.QuestionId,
	}, answer.Given{Session: r.Parent, Call: r.CallId, RequestID: r.RequestId, Question: r})
}

// SubmitToolResult puts the result of a client's tool into the inbox.
func (s *SessionServer) SubmitToolResult(
	ctx context.Context, r *sessionv1.SubmitToolResultRequest,
) (*sessionv1.SubmitToolResultResponse, error) {
	var err error
	if r.Content, err = s.Submit.Content(ctx, r.Content); err != nil {
		return nil, err
	}
	return &sessionv1.SubmitToolResultResponse{}, s.answer(ctx, "SubmitToolResult", r, store.Submit{
		Command: store.Command{Kind: store.CommandToolResult, CallID: r.CallId},
	}, answer.Given{Session: r.Parent, Call: r.CallId, RequestID: r.RequestId, Result: r})
}

// answer puts an answer to a call into the inbox, unless it is the one that was given before.
func (s *SessionServer) answer(ctx context.Context, method string, r proto.Message, n store.Submit, g answer.Given) error {
	_, err := s.submit(ctx, g.Session, method, g.RequestID, r, n)
	return s.answers.Refused(ctx, err, g)
}

// command submits a command that is neither a turn nor an answer to a call.
func (s shared) command(
	ctx context.Context, session, method, requestID string, r proto.Message, submit store.Submit,
) (store.Answer, error) {
	answer, err := s.submit(ctx, session, method, requestID, r, submit)
	if errors.Is(err, store.ErrTurnActive) {
		return answer, refusal.TurnActive(session)
	}
	return answer, refusal.Store(err, refusal.Subject{Session: session, Call: submit.Command.CallID, RequestID: requestID})
}

// submit puts a command into the inbox. Its errors are the store's.
func (s shared) submit(
	ctx context.Context, session, method, requestID string, r proto.Message, submit store.Submit,
) (store.Answer, error) {
	body, err := proto.Marshal(r)
	if err != nil {
		return store.Answer{}, fmt.Errorf("marshal the request: %w", err)
	}
	submit.Key = request.Key(ctx, session)
	submit.Command.Body, submit.Command.User = body, request.User(ctx)
	submit.Request = request.KeepForADay(store.RequestOf(method, session, requestID, r))
	return s.Store.Submit(ctx, submit)
}

// splitTurn splits `sessions/{session}/turns/{turn}`; the schema has checked the form.
func splitTurn(name string) (session, turnID string) {
	session, turnID, _ = strings.Cut(name, "/turns/")
	return session, turnID
}
