package conversation

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// greeting returns the agent's first message, if any.
func greeting(k store.Key, a agent.Agent) []*sessionv1.Message {
	if a.Spec.Greeting == "" {
		return nil
	}
	return []*sessionv1.Message{{
		Name: "sessions/" + k.Session + "/messages/" + id.New(), Role: sessionv1.Role_ROLE_ASSISTANT, CreateTime: timestamppb.Now(),
		Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
			Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: a.Spec.Greeting}},
		}}}},
	}}
}

// GetSession reads a session.
func (s *SessionServer) GetSession(ctx context.Context, r *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	session, err := s.Store.GetSession(ctx, request.Key(ctx, r.Name))
	return &sessionv1.GetSessionResponse{Session: session}, refusal.Store(err, refusal.Subject{Session: r.Name})
}

// listedUser returns the id of the user whose things a request lists, by name or all that the caller may see;
// "" is the whole tenant.
func listedUser(ctx context.Context, name string) string {
	p := request.Caller(ctx)
	switch {
	case p.Role < principal.RoleOperator:
		return p.User // another user's were refused before
	case name != "":
		return request.UserOf(ctx, name).User
	}
	return ""
}

// deleteWait is how long DeleteSession waits for tools and sandbox to delete
// their data. If they do not in time, a job repeats the request later.
const deleteWait = 5 * time.Second

// DeleteSession deletes a session. The deletion is durable once the store has
// done it. Tools and sandbox delete their data now if they can be reached,
// otherwise as soon as they can.
func (s *SessionServer) DeleteSession(ctx context.Context, r *sessionv1.DeleteSessionRequest) (*sessionv1.DeleteSessionResponse, error) {
	k := request.Key(ctx, r.Name)
	answer, err := s.Store.DeleteSession(ctx, k, request.Lasting("DeleteSession", r.Name, r))
	if errors.Is(err, store.ErrTurnActive) {
		return nil, refusal.SessionActive(r.Name)
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Name, RequestID: r.RequestId})
	}
	if !answer.Replayed {
		s.Hub.Publish(k, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	if err := s.Try(ctx, k.Tenant, store.JobDelete, k.Session); err != nil {
		s.Log.WarnContext(ctx, "a deleted session's calls and files are removed later", "session", r.Name, "error", err)
	}
	return &sessionv1.DeleteSessionResponse{}, nil
}
