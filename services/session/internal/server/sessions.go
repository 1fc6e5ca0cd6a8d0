package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CreateSession creates a session with the agent's present revision.
func (s *Server) CreateSession(ctx context.Context, r *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	a, ok := s.Agents.Get(r.GetSession().GetAgent())
	if !ok {
		return nil, agentNotFound(r.GetSession().GetAgent(), "session.agent")
	}
	k := key(ctx, r.SessionId)
	if k.Session == "" {
		k.Session = id.New()
	}
	if err := s.keepRevision(ctx, k.Tenant, a); err != nil {
		return nil, storeError(err, subject{})
	}
	n := store.NewSession{
		Key: k, Agent: a.Name(), AgentRevision: a.Revision, Title: r.GetSession().GetTitle(), Labels: r.GetSession().GetLabels(),
		Greeting: greeting(k, a), Request: keepForADay(request("CreateSession", "", r.RequestId, r)),
		Event: &sessionv1.Event{FirstSeq: 1, Seq: 1, Time: timestamppb.Now(), Body: &sessionv1.Event_SessionCreated{
			SessionCreated: &sessionv1.SessionCreated{Agent: a.Name(), Greeting: a.Spec.Greeting},
		}},
	}
	about := subject{session: "sessions/" + k.Session, requestID: r.RequestId}
	answer, err := s.Store.CreateSession(ctx, n)
	if err != nil {
		return nil, storeError(err, about)
	}
	k.Session = answer.Value
	session, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return nil, storeError(err, subject{session: "sessions/" + k.Session})
	}
	return &sessionv1.CreateSessionResponse{Session: session}, nil
}

// keepRevision writes an agent's revision down, once a tenant.
func (s *Server) keepRevision(ctx context.Context, tenant string, a agent.Agent) error {
	known := tenant + "\x00" + a.ID + "\x00" + a.Revision
	if _, ok := s.revisions.Load(known); ok {
		return nil
	}
	err := s.Store.PutAgentRevision(ctx, tenant, store.AgentRevision{Name: a.Name(), Revision: a.Revision, Spec: a.Spec.Marshal()})
	if err == nil {
		s.revisions.Store(known, true)
	}
	return err
}

// greeting is what the agent says first, if anything.
func greeting(k store.Key, a agent.Agent) *sessionv1.Message {
	if a.Spec.Greeting == "" {
		return nil
	}
	return &sessionv1.Message{
		Name: "sessions/" + k.Session + "/messages/" + id.New(), Role: sessionv1.Role_ROLE_ASSISTANT, CreateTime: timestamppb.Now(),
		Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{
			Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: a.Spec.Greeting}},
		}}}},
	}
}

// GetSession reads a session.
func (s *Server) GetSession(ctx context.Context, r *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	session, err := s.Store.GetSession(ctx, key(ctx, r.Name))
	if err != nil {
		return nil, storeError(err, subject{session: r.Name})
	}
	return &sessionv1.GetSessionResponse{Session: session}, nil
}

type sessionCursor struct {
	Time time.Time `json:"t"`
	ID   string    `json:"i"`
}

// ListSessions lists a page of sessions.
func (s *Server) ListSessions(ctx context.Context, r *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	name := r.Agent
	if name != "" {
		if a, ok := s.Agents.Get(name); ok {
			name = a.Name()
		}
	}
	tenant := key(ctx, "").Tenant
	scope := "ListSessions\x00" + tenant + "\x00" + name
	var c sessionCursor
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &c); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	size := page.Size(r.PageSize, 50, 1000)
	sessions, err := s.Store.ListSessions(ctx, store.SessionPage{Tenant: tenant, Agent: name, AfterTime: c.Time, AfterID: c.ID, Limit: size + 1})
	if err != nil {
		return nil, storeError(err, subject{})
	}
	resp := &sessionv1.ListSessionsResponse{Sessions: sessions}
	if len(sessions) > size {
		last := sessions[size-1]
		resp.Sessions = sessions[:size]
		resp.NextPageToken = page.Encode(scope, sessionCursor{Time: last.CreateTime.AsTime(), ID: key(ctx, last.Name).Session})
	}
	return resp, nil
}

// DeleteSession deletes a session here, then in tools and sandbox. When one of
// those cannot be reached the answer is UNAVAILABLE; repeating the request with
// the same id finishes the work.
func (s *Server) DeleteSession(ctx context.Context, r *sessionv1.DeleteSessionRequest) (*sessionv1.DeleteSessionResponse, error) {
	k := key(ctx, r.Name)
	answer, err := s.Store.DeleteSession(ctx, k, keepForADay(request("DeleteSession", r.Name, r.RequestId, r)))
	if errors.Is(err, store.ErrTurnActive) {
		return nil, sessionActive(r.Name)
	}
	if err != nil {
		return nil, storeError(err, subject{session: r.Name, requestID: r.RequestId})
	}
	if answer.Replayed {
		// A late repetition must not touch a session that was made again under the name.
		switch _, err := s.Store.GetSession(ctx, k); {
		case err == nil:
			return &sessionv1.DeleteSessionResponse{}, nil
		case !errors.Is(err, store.ErrNotFound):
			return nil, storeError(err, subject{session: r.Name})
		}
	}
	s.Hub.Publish(k, nil)
	if _, err := s.Calls.DeleteSessionCalls(ctx, &toolsv1.DeleteSessionCallsRequest{Session: r.Name}); err != nil {
		return nil, s.halfDeleted(ctx, r, "tools", err)
	}
	if _, err := s.Workspaces.DeleteWorkspace(ctx, &sandboxv1.DeleteWorkspaceRequest{Session: r.Name}); err != nil {
		return nil, s.halfDeleted(ctx, r, "sandbox", err)
	}
	return &sessionv1.DeleteSessionResponse{}, nil
}

func (s *Server) halfDeleted(ctx context.Context, r *sessionv1.DeleteSessionRequest, peer string, err error) error {
	s.Log.WarnContext(ctx, "a deleted session is left in a peer", "session", r.Name, "peer", peer, "error", err)
	return apierr.New(codes.Unavailable, domain, "STORE_UNAVAILABLE",
		fmt.Sprintf("Session %s is deleted, but the %s service could not be told to delete what it holds of it. Repeat the request with the same request id (%s) to finish.", r.Name, peer, r.RequestId),
		apierr.RetryAfter(time.Second))
}
