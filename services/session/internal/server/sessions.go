package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// sessions creates, shows and deletes sessions.
type sessions struct {
	*Config
	find *finder
}

// CreateSession creates a session with the agent's current revision.
func (s *sessions) CreateSession(ctx context.Context, r *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	k := key(ctx, r.SessionId)
	if k.Session == "" {
		k.Session = id.New()
	}
	if err := checkSessionBudget(r.GetSession().GetBudget(), s.Budgets.For(k.Tenant).Session); err != nil {
		return nil, err
	}
	a, err := s.find.forSession(ctx, k.Tenant, r.GetSession().GetAgent(), "session.agent")
	if err != nil {
		return nil, err
	}
	n := store.NewSession{
		Budget: r.GetSession().GetBudget(), Mounts: r.GetSession().GetMounts(),
		Key: k, User: user(ctx), Agent: a.Name(), AgentRevision: a.Revision, AgentVersion: a.Version, Title: r.GetSession().GetTitle(), Labels: r.GetSession().GetLabels(),
		Messages: greeting(k, a), Request: keepForADay(request("CreateSession", ownScope(ctx), r.RequestId, r)),
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
func (s *sessions) GetSession(ctx context.Context, r *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	session, err := s.Store.GetSession(ctx, key(ctx, r.Name))
	if err != nil {
		return nil, storeError(err, subject{session: r.Name})
	}
	return &sessionv1.GetSessionResponse{Session: session}, nil
}

// listedUser returns the id of the user whose things a request lists, by name or all that the caller may see;
// "" is the whole tenant.
func listedUser(ctx context.Context, name string) string {
	p := caller(ctx)
	switch {
	case p.Role < principal.RoleOperator:
		return p.User // another user's were refused before
	case name != "":
		return userOf(ctx, name).User
	}
	return ""
}

// SessionOwner returns the user to whom a session belongs, or "" if there is no such session.
func (s *sessions) SessionOwner(ctx context.Context, session string) (string, error) {
	owner, err := s.Store.SessionOwner(ctx, key(ctx, session))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return owner, storeError(err, subject{session: session})
}

// SessionNotFound returns the error for a session that does not exist, or that the caller may not see.
func (*sessions) SessionNotFound(session string) error { return sessionNotFound(session) }

type sessionCursor struct {
	Time time.Time `json:"t"`
	ID   string    `json:"i"`
}

// ListSessions lists a page of sessions.
func (s *sessions) ListSessions(ctx context.Context, r *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	name := r.Agent
	if name != "" {
		name = agentName(name)
	}
	tenant, owner := key(ctx, "").Tenant, listedUser(ctx, r.User)
	scope := "ListSessions\x00" + tenant + "\x00" + name
	if owner != "" {
		scope += "\x00" + owner
	}
	var c sessionCursor
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &c); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	size := page.Size(r.PageSize, 50, 1000)
	sessions, more, err := page.Fill(size, func(last *sessionv1.Session, n int) ([]*sessionv1.Session, error) {
		if last != nil {
			c = sessionCursorAt(last)
		}
		return s.Store.ListSessions(ctx, store.SessionPage{Tenant: tenant, Agent: name, User: owner, AfterTime: c.Time, AfterID: c.ID, Limit: n})
	})
	if err != nil {
		return nil, storeError(err, subject{})
	}
	resp := &sessionv1.ListSessionsResponse{Sessions: sessions}
	if more {
		resp.NextPageToken = page.Encode(scope, sessionCursorAt(sessions[len(sessions)-1]))
	}
	return resp, nil
}

func sessionCursorAt(s *sessionv1.Session) sessionCursor {
	return sessionCursor{Time: s.CreateTime.AsTime(), ID: lastSegment(s.Name)}
}

// deleteWait is how long DeleteSession waits for tools and sandbox to delete
// their data. If they do not in time, a job repeats the request later.
const deleteWait = 5 * time.Second

// DeleteSession deletes a session. The deletion is durable once the store has
// done it. Tools and sandbox delete their data now if they can be reached,
// otherwise as soon as they can.
func (s *sessions) DeleteSession(ctx context.Context, r *sessionv1.DeleteSessionRequest) (*sessionv1.DeleteSessionResponse, error) {
	k := key(ctx, r.Name)
	answer, err := s.Store.DeleteSession(ctx, k, keepForADay(request("DeleteSession", r.Name, r.RequestId, r)))
	if errors.Is(err, store.ErrTurnActive) {
		return nil, sessionActive(r.Name)
	}
	if err != nil {
		return nil, storeError(err, subject{session: r.Name, requestID: r.RequestId})
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
