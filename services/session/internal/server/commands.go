package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// commands puts commands other than turns into inboxes.
type commands struct{ *Config }

// InterruptSession puts an interrupt into the inbox.
func (s *commands) InterruptSession(
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
func (s *commands) SetPermissionMode(
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
func (s *commands) CompactSession(ctx context.Context, r *sessionv1.CompactSessionRequest) (*sessionv1.CompactSessionResponse, error) {
	_, err := s.command(ctx, r.Name, "CompactSession", r.RequestId, r, store.Submit{Command: store.Command{Kind: store.CommandCompact}})
	if err != nil {
		return nil, err
	}
	return &sessionv1.CompactSessionResponse{}, nil
}

// ResolveApproval puts a person's answer into the inbox.
func (s *commands) ResolveApproval(ctx context.Context, r *sessionv1.ResolveApprovalRequest) (*sessionv1.ResolveApprovalResponse, error) {
	if err := s.checkApproval(ctx, r); err != nil {
		return nil, err
	}
	_, err := s.submit(ctx, r.Parent, "ResolveApproval", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandApproval, CallID: r.CallId}, Digest: r.Digest,
	})
	if err := s.answerError(ctx, err, submittedAnswer{session: r.Parent, call: r.CallId, requestID: r.RequestId, approval: r}); err != nil {
		return nil, err
	}
	return &sessionv1.ResolveApprovalResponse{}, nil
}

// AnswerQuestion puts a person's answer to a question into the inbox.
func (s *commands) AnswerQuestion(ctx context.Context, r *sessionv1.AnswerQuestionRequest) (*sessionv1.AnswerQuestionResponse, error) {
	if err := s.checkAnswer(ctx, r); err != nil {
		return nil, err
	}
	_, err := s.submit(ctx, r.Parent, "AnswerQuestion", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandAnswer, CallID: r.CallId}, Digest: r.QuestionId,
	})
	if errors.Is(err, store.ErrDigestMismatch) {
		return nil, refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_QUESTION_MISMATCH,
			fmt.Sprintf("Call %s asks another question by now. Show the person the latest question.requested, and answer with its question's id.", r.CallId),
			apierr.Precondition("CALL", r.CallId, "asks another question"))
	}
	if err := s.answerError(ctx, err, submittedAnswer{session: r.Parent, call: r.CallId, requestID: r.RequestId, question: r}); err != nil {
		return nil, err
	}
	return &sessionv1.AnswerQuestionResponse{}, nil
}

// SubmitToolResult puts the result of a client's tool into the inbox.
func (s *commands) SubmitToolResult(
	ctx context.Context, r *sessionv1.SubmitToolResultRequest,
) (*sessionv1.SubmitToolResultResponse, error) {
	var err error
	if r.Content, err = s.Submit.Content(ctx, r.Content); err != nil {
		return nil, err
	}
	_, err = s.submit(ctx, r.Parent, "SubmitToolResult", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandToolResult, CallID: r.CallId},
	})
	if err := s.answerError(ctx, err, submittedAnswer{session: r.Parent, call: r.CallId, requestID: r.RequestId, result: r}); err != nil {
		return nil, err
	}
	return &sessionv1.SubmitToolResultResponse{}, nil
}

// command submits a command that is neither a turn nor an answer to a call.
func (s *commands) command(
	ctx context.Context, session, method, requestID string, r proto.Message, submit store.Submit,
) (store.Answer, error) {
	answer, err := s.submit(ctx, session, method, requestID, r, submit)
	if errors.Is(err, store.ErrTurnActive) {
		return answer, refusal.TurnActive(session)
	}
	return answer, refusal.Store(err, refusal.Subject{Session: session, Call: submit.Command.CallID, RequestID: requestID})
}

// submit puts a command into the inbox. Its errors are the store's.
func (s *commands) submit(
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
