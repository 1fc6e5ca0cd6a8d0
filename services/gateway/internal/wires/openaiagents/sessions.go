package openaiagents

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// sessionDoc is what our sessions have no place for.
type sessionDoc struct {
	Agent       map[string]any    `json:"agent"` // as it was at the beginning
	Tools       []tool            `json:"tools"` // of it
	Environment map[string]any    `json:"environment"`
	Metadata    map[string]string `json:"metadata"`
	Limit       json.Number       `json:"limit,omitempty"` // of the spend control, in cents
}

// sessionDocName is the key of a document in the metadata of a session.
const sessionDocName = "openai_session"

type sessionParams struct {
	Agent       json.RawMessage    `json:"agent"`
	AgentID     *string            `json:"agent_id"`
	Environment *environmentParams `json:"environment"`
	Input       json.RawMessage    `json:"input"`
	Metadata    metadata           `json:"metadata"`
	Review      *string            `json:"review"`
	Spend       *struct {
		Limit *json.Number `json:"limit"`
	} `json:"spend_control"`
	Stream bool     `json:"stream"`
	Vaults []string `json:"vault_ids"`
}

func sessionName(id string) string { return "sessions/" + strings.TrimPrefix(id, "sessions/") }

// budget returns the limit of a session in our terms: a cent is 10,000,000 billionths of a dollar.
func (p sessionParams) budget() (*sessionv1.Budget, json.Number, error) {
	if p.Spend == nil || p.Spend.Limit == nil {
		return nil, "", nil
	}
	n, err := p.Spend.Limit.Float64()
	if err != nil || n <= 0 || n > math.MaxInt64/nanoPerCent/2 {
		return nil, "", resource.Bad("spend_control.limit", problem.Excerpt(p.Spend.Limit.String())+" is not a number of cents above 0")
	}
	return &sessionv1.Budget{MaxCostNanoUsd: int64(math.Round(n * nanoPerCent))}, *p.Spend.Limit, nil
}

// check refuses what a new session cannot have, and returns what it says first.
func (p sessionParams) check() ([]*commonv1.Content, error) {
	switch {
	case len(p.Vaults) > 0:
		return nil, resource.Bad("vault_ids", "vaults are not served; users log in to MCP servers, and operators configure credentials")
	case p.Review != nil && *p.Review != "none":
		return nil, resource.Bad("review", problem.Excerpt(*p.Review)+" is not served, only none")
	}
	content, err := inputOf(p.Input)
	if err != nil {
		return nil, err
	}
	if len(content) == 0 && (p.Stream || p.Environment != nil && p.Environment.Type == "none") {
		return nil, resource.Bad("input", "it is required for a stream, and without an environment")
	}
	return content, nil
}

func (s *sessionsServer) createSession(c *request) (any, error) {
	var p sessionParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	content, err := p.check()
	if err != nil {
		return nil, err
	}
	d := &sessionDoc{}
	if d.Metadata, err = p.Metadata.checked(); err != nil {
		return nil, err
	}
	want := &sessionv1.Session{}
	if want.Budget, d.Limit, err = p.budget(); err != nil {
		return nil, err
	}
	where, err := s.surroundings(c, p.Environment)
	if err != nil {
		return nil, err
	}
	agent, doc, instructions, err := s.agentFor(c, p.AgentID, p.Agent, where)
	if err != nil {
		return nil, err
	}
	if where.none {
		want.Permissions = withoutTools()
	}
	if p.Stream { // a stream that there is no room for makes nothing
		release, err := s.wire.Acquire(c.R)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := s.settle(c, &where); err != nil {
		return nil, err
	}
	a, err := agent()
	if err != nil {
		return nil, err
	}
	want.Agent, want.Environment = a.GetName(), where.name
	d.Environment = where.shown
	d.describe(a, doc, instructions)
	x, turn, err := s.begin(c, a, want, d, content)
	if err != nil {
		return nil, err
	}
	if !p.Stream {
		return s.sessionJSON(c, x)
	}
	return nil, s.streamFirst(c, x, turn)
}

// describe fills in what a session shows of its agent.
func (d *sessionDoc) describe(a *sessionv1.Agent, doc *agentDoc, instructions string) {
	d.Tools, d.Agent = doc.Tools, doc.configuration(a.GetName(), instructions)
}

// mostDoc bounds what is kept with a session, in bytes.
const mostDoc = 262144

// json returns the document beside what others keep. Instructions that do not fit are left out.
func (d *sessionDoc) json(before string) (string, error) {
	text := keep(before, sessionDocName, d)
	if len(text) > mostDoc {
		d.Agent["instructions"] = nil
		text = keep(before, sessionDocName, d)
	}
	if len(text) > mostDoc {
		return "", resource.Bad("agent.tools", "the tools and texts need more than 256 KiB")
	}
	return text, nil
}

// begin creates a session and its first turn, if there is one. A repetition does what the first attempt has not.
func (s *sessionsServer) begin(c *request, a *sessionv1.Agent, want *sessionv1.Session, d *sessionDoc, content []*commonv1.Content) (*sessionv1.Session, string, error) {
	text, err := d.json("")
	if err != nil {
		return nil, "", err
	}
	want.MetadataJson = text
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.wire.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: want, RequestId: c.Key})
	if err != nil {
		return nil, "", err
	}
	x := made.GetSession()
	if x.GetAgentVersion() != a.GetVersion() { // the agent was changed meanwhile
		if a, err = s.agent(c, wire.LastPart(x.GetAgent())); err != nil {
			return nil, "", err
		}
		d.describe(a, docOf(a.GetMetadataJson(), a.GetName(), a.GetModel()), s.instructions(c, a))
		if x, err = s.keepDoc(ctx, c, x, d, 4); err != nil {
			return nil, "", err
		}
	}
	if len(content) == 0 {
		return x, "", nil
	}
	tools, _ := clientTools(d.Tools)
	turn, err := s.wire.Sessions.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: x.GetName(), Content: content, ClientTools: tools, RequestId: c.Part(1)})
	if err != nil {
		return nil, "", err
	}
	x.State = sessionv1.SessionState_SESSION_STATE_RUNNING
	return x, turn.GetTurn().GetName(), nil
}

// keepDoc stores what is kept with a session.
func (s *sessionsServer) keepDoc(ctx context.Context, c *request, x *sessionv1.Session, d *sessionDoc, part int) (*sessionv1.Session, error) {
	text, err := d.json(x.GetMetadataJson())
	if err != nil {
		return nil, err
	}
	done, err := s.wire.Sessions.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: x.GetName(), MetadataJson: &text, RequestId: c.Part(part)})
	return done.GetSession(), err
}

// sessionDocOf returns what is kept with a session; one of another interface shows what it has.
func sessionDocOf(x *sessionv1.Session) *sessionDoc {
	d := &sessionDoc{}
	if kept(x.GetMetadataJson(), sessionDocName, d) && d.Agent != nil && d.Environment != nil { // any user can write metadata
		return d
	}
	doc := docOf("", x.GetAgent(), "")
	return &sessionDoc{Agent: doc.configuration(x.GetAgent(), ""), Tools: doc.Tools, Metadata: map[string]string{}, Environment: map[string]any{
		"type": "openai_hosted", "capability_directories": []any{}, "files": []any{}, "network": map[string]any{"access": "disabled", "allowed_domains": []any{}},
		"plugins": []any{}, "skills": []any{}, "packages": map[string]any{"npm": []any{}, "python": []any{}, "system": []any{}},
	}}
}

// environmentID is the id of a session's environment: its workspace.
func environmentID(session string) string { return "env_" + wire.LastPart(session) }

// plainSession returns a session as the wire has it, without what it waits for.
func plainSession(x *sessionv1.Session) map[string]any {
	d := sessionDocOf(x)
	if d.Environment["type"] != "none" {
		d.Environment["id"] = environmentID(x.GetName())
	}
	out := map[string]any{
		"id": wire.LastPart(x.GetName()), "object": "agent.session", "status": statusIdle, "agent": d.Agent, "environment": d.Environment, "required_actions": []any{},
		"error": nil, "metadata": d.Metadata, "usage": nil, "vault_ids": []any{}, "review": "none",
		"created_at": x.GetCreateTime().GetSeconds(), "last_active_at": x.GetUpdateTime().GetSeconds(),
	}
	if x.GetUsage() != nil && x.GetFinishedTurns() > 0 {
		out["usage"] = usageJSON(x.GetUsage())
	}
	if d.Limit != "" {
		out["spend_control"] = map[string]any{"limit": d.Limit, "consumed": cents(x.GetUsage().GetCostNanoUsd())}
	}
	switch {
	case x.ArchiveTime != nil:
		out["status"], out["error"] = statusFailed, "The session is archived: it takes no messages."
	case x.GetState() == sessionv1.SessionState_SESSION_STATE_RUNNING:
		out["status"] = statusRunning
	case x.GetState() == sessionv1.SessionState_SESSION_STATE_WAITING:
		out["status"] = statusWaiting
	}
	return out
}

// sessionJSON returns a session as the wire has it.
func (s *base) sessionJSON(c *request, x *sessionv1.Session) (any, error) {
	out := plainSession(x)
	if out["status"] != statusWaiting {
		return out, nil
	}
	enc, _, err := s.history(c, x)
	if err != nil {
		return nil, err
	}
	out["status"], out["required_actions"] = enc.status, enc.actions // the log knows best
	return out, nil
}

// session reads the session of a request.
func (s *base) session(c *request) (*sessionv1.Session, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.wire.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: sessionName(c.ID[0])})
	return got.GetSession(), err
}

func (s *sessionsServer) getSession(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	return s.sessionJSON(c, x)
}

func (s *sessionsServer) updateSession(c *request) (any, error) {
	var p sessionParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	has := resource.Fields(c.Body)
	for _, field := range []string{"agent", "spend_control", "environment"} {
		if raw, ok := has[field]; ok && string(raw) != "null" {
			return nil, resource.Bad(field, "it cannot be changed in a session of Fairlead; begin a new session")
		}
	}
	if _, err := p.check(); err != nil {
		return nil, err
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	if raw, ok := has["metadata"]; ok && string(raw) != "null" {
		d := sessionDocOf(x)
		if d.Metadata, err = p.Metadata.checked(); err != nil {
			return nil, err
		}
		ctx, cancel := s.within(c)
		defer cancel()
		if _, err = s.keepDoc(ctx, c, x, d, 0); err != nil {
			return nil, err
		}
	}
	return s.getSession(c)
}

func (s *sessionsServer) deleteSession(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	name := sessionName(c.ID[0])
	if _, err := s.wire.Sessions.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: name, RequestId: c.Key}); err != nil {
		return nil, err
	}
	return map[string]any{"id": wire.LastPart(name), "object": "agent.session.deleted", "deleted": true}, nil
}

func (s *sessionsServer) listSessions(c *request) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	want := map[string]string{}
	for name, values := range l.query {
		if key, ok := strings.CutPrefix(name, "metadata["); ok && strings.HasSuffix(key, "]") {
			want[strings.TrimSuffix(key, "]")] = values[0]
		}
	}
	req := &sessionv1.ListSessionsRequest{PageSize: 1000, OldestFirst: l.oldest}
	if id := l.query.Get("agent_id"); id != "" {
		req.Agent = agentName(id)
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var data []entry
	begun := l.after == ""
	for {
		got, err := s.wire.Sessions.ListSessions(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, x := range got.GetSessions() {
			id := wire.LastPart(x.GetName())
			if !begun {
				if begun = l.passed(id); !begun || id == l.after {
					continue
				}
			}
			if has(sessionDocOf(x).Metadata, want) {
				data = append(data, entry{id, plainSession(x)})
			}
		}
		if req.PageToken = got.GetNextPageToken(); req.PageToken == "" || len(data) > l.limit {
			return listJSON(data, l.limit), nil
		}
	}
}

func has(metadata, want map[string]string) bool {
	for k, v := range want {
		if metadata[k] != v {
			return false
		}
	}
	return true
}
