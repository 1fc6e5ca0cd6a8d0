package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// CreateSession creates a session with the agent's current revision, and the turn of its first message.
func (s *SessionServer) CreateSession(ctx context.Context, r *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	return s.Create(ctx, r, submit.Origin{}, r.Limits)
}

// Create creates a session whose first turn has an origin and limits.
func (s *SessionServer) Create(
	ctx context.Context, r *sessionv1.CreateSessionRequest, from submit.Origin, limits *sessionv1.TurnLimits,
) (*sessionv1.CreateSessionResponse, error) {
	k := request.Key(ctx, r.SessionId)
	if k.Session == "" {
		k.Session = id.New()
	}
	if err := s.Submit.CheckSessionBudget(k.Tenant, r.GetSession().GetBudget()); err != nil {
		return nil, err
	}
	if err := checkMetadata(r.GetSession().GetMetadataJson(), "session.metadata_json"); err != nil {
		return nil, err
	}
	a, err := s.Directory.AgentForSession(ctx, k.Tenant, r.GetSession().GetAgent(), "session.agent")
	if err != nil {
		return nil, err
	}
	if a, err = s.Directory.InEnvironment(ctx, k.Tenant, r.GetSession().GetEnvironment(), a); err != nil {
		return nil, err
	}
	if a, err = s.Directory.WithSkills(ctx, k.Tenant, request.User(ctx), r.GetSession().GetSkills(), a); err != nil {
		return nil, err
	}
	if err := s.Submit.CheckOptions(ctx, a.Spec, r.GetSession().GetTurnOptions(), "session.turn_options", false); err != nil {
		return nil, err
	}
	if err := s.Submit.CheckMode(ctx, a.Spec, r.GetSession().GetTurnOptions(), "session.turn_options"); err != nil {
		return nil, err
	}
	if err := s.Directory.CheckMCP(ctx, "session.mcp_servers", r.GetSession().GetMcpServers()); err != nil {
		return nil, err
	}
	if err := s.Directory.CheckPermissions(ctx, "session.permissions", r.GetSession().GetPermissions()); err != nil {
		return nil, err
	}
	n := newSession(k, a, r)
	n.User, n.Caps = request.User(ctx), s.Use.Sessions(k.Tenant, request.User(ctx))
	n.Request = request.Lasting("CreateSession", request.OwnScope(ctx), r)
	first, err := s.firstTurn(ctx, &n, a.Spec, r.GetSession().GetFirstMessage(), from, limits)
	if err != nil {
		return nil, err
	}
	answer, err := s.Store.CreateSession(ctx, n)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: "sessions/" + k.Session, RequestID: r.RequestId})
	}
	k.Session = answer.Value
	session, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: "sessions/" + k.Session})
	}
	if first != "" && answer.Replayed {
		first, err = s.oldestTurn(ctx, k)
	}
	session.FirstTurn = first
	return &sessionv1.CreateSessionResponse{Session: session}, err
}

// newSession returns the session of a request.
func newSession(k store.Key, a agent.Agent, r *sessionv1.CreateSessionRequest) store.NewSession {
	asked := r.GetSession()
	a.Spec.Greeting = agent.GreetingFor(a.Spec, agent.Options(asked.GetFirstMessage().GetOptions(), asked.GetTurnOptions()))
	return store.NewSession{
		Key: k, Agent: a.Name(), AgentRevision: a.Revision, AgentVersion: a.Version, Title: asked.GetTitle(), Labels: asked.GetLabels(),
		Budget: asked.GetBudget(), MetadataJSON: asked.GetMetadataJson(), CallerKey: asked.GetKey(), Replace: r.Replace,
		TurnOptions: asked.GetTurnOptions(), Environment: a.Spec.Environment, EnvironmentVersion: a.Spec.EnvironmentVersion(),
		Additions: store.Additions{
			Mounts: asked.GetMounts(), MCPServers: asked.GetMcpServers(), Skills: a.Spec.SkillLabels(), Permissions: asked.GetPermissions(),
		},
		Messages: greeting(k, a),
		Event: &sessionv1.Event{FirstSeq: 1, Seq: 1, Time: timestamppb.Now(), Body: &sessionv1.Event_SessionCreated{
			SessionCreated: &sessionv1.SessionCreated{Agent: a.Name(), Greeting: a.Spec.Greeting},
		}},
	}
}

// firstTurn adds the turn of the first message, if there is one, and returns its name.
func (s *SessionServer) firstTurn(
	ctx context.Context, n *store.NewSession, spec agent.Spec, m *sessionv1.FirstMessage, from submit.Origin, limits *sessionv1.TurnLimits,
) (string, error) {
	if m == nil {
		return "", nil
	}
	content, err := s.Submit.Content(ctx, m.Content)
	if err != nil {
		return "", err
	}
	r := &sessionv1.CreateTurnRequest{Parent: "sessions/" + n.Session, Text: m.Text, Content: content, Options: m.Options, Limits: limits}
	session := &sessionv1.Session{Name: r.Parent, Agent: n.Agent, AgentRevision: n.AgentRevision, LastSeq: n.Event.Seq, TurnOptions: n.TurnOptions}
	t, command, err := s.Submit.Prepare(ctx, submit.Message{Method: "CreateSession", Request: r, Origin: from}, session, spec)
	if err != nil {
		return "", err
	}
	command.Request = store.Request{} // the session's request covers it
	n.First = &command
	return t.Name, nil
}

// oldestTurn returns the turn that a session began with.
func (s *SessionServer) oldestTurn(ctx context.Context, k store.Key) (string, error) {
	turns, err := s.Store.ListTurns(ctx, k, "", 1)
	if err != nil {
		return "", refusal.Store(err, refusal.Subject{Session: "sessions/" + k.Session})
	}
	if len(turns) == 0 {
		return "", fmt.Errorf("session %s lost its first turn", k.Session)
	}
	return turns[0].Name, nil
}

// checkMetadata refuses text that is not JSON.
func checkMetadata(text, field string) error {
	if text == "" || json.Valid([]byte(text)) {
		return nil
	}
	return refusal.Input(field, "The metadata is not valid JSON. Send one JSON value as text.")
}

// sessionError is storeError for a request that changes a session.
func sessionError(err error, about refusal.Subject) error {
	if errors.Is(err, store.ErrTurnActive) {
		return refusal.SessionActive(about.Session)
	}
	return refusal.Store(err, about)
}
