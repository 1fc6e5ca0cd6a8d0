package managed

import (
	"encoding/json"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// sessionDoc is what our sessions have no place for.
type sessionDoc struct {
	Agent       map[string]any    `json:"agent"` // as it was at the beginning
	Tools       []tool            `json:"tools"` // of it
	Environment string            `json:"environment_id"`
	Metadata    map[string]string `json:"metadata"`
	Budget      json.RawMessage   `json:"budget,omitempty"`
	Resources   []map[string]any  `json:"resources"`
	Hosted      bool              `json:"self_hosted,omitempty"` // a worker runs the toolset
}

type sessionParams struct {
	Agent       json.RawMessage   `json:"agent"`
	Environment string            `json:"environment_id"`
	Title       *string           `json:"title"`
	Metadata    metadata          `json:"metadata"`
	Resources   []attachment      `json:"resources"`
	Vaults      []string          `json:"vault_ids"`
	Initial     []json.RawMessage `json:"initial_events"`
	Budget      json.RawMessage   `json:"budget"`
}

type attachment struct {
	Type string `json:"type"`
	File string `json:"file_id"`
	Path string `json:"mount_path"`
}

func sessionName(id string) string { return "sessions/" + strings.TrimPrefix(id, sessionPrefix) }

// agentOf returns the agent that a session asks for, in its newest version: our sessions begin with that one.
func (s *base) agentOf(c *request, raw json.RawMessage) (*sessionv1.Agent, error) {
	var in struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Version *int32 `json:"version"`
	}
	if json.Unmarshal(raw, &in.ID) != nil {
		if json.Unmarshal(raw, &in) != nil {
			return nil, resource.Bad("agent", "it is neither an id nor an object")
		}
		if in.Type != "agent" {
			return nil, resource.Bad("agent.type", problem.Excerpt(in.Type)+" is not served; make an agent with what the session needs, and name it with the type agent")
		}
	}
	if in.ID == "" {
		return nil, resource.Bad("agent", "it is required")
	}
	a, err := s.agent(c, agentName(in.ID))
	if err == nil && in.Version != nil && *in.Version != max(1, a.GetVersion()) {
		return nil, resource.Bad("agent.version", fmt.Sprintf("a session begins with the newest version, which is %d; Fairlead's API can go back to an earlier one for all new sessions", a.GetVersion()))
	}
	return a, err
}

// budgetOf returns a budget in our terms: cents are 10,000,000 billionths of a dollar.
func budgetOf(raw json.RawMessage) (*sessionv1.Budget, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // no budget is no error
	}
	var in struct {
		Type string `json:"type"`
		Cost struct {
			Amount   json.RawMessage `json:"amount"`
			Currency string          `json:"currency"`
		} `json:"max_list_cost"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Type != "limit" || in.Cost.Currency != "USD" {
		return nil, resource.Bad("budget", `it is not of the form {"type":"limit","max_list_cost":{"amount":"500","currency":"USD"}}`)
	}
	nano, ok := nanoUSD(strings.Trim(string(in.Cost.Amount), `"`))
	if !ok {
		return nil, resource.Bad("budget.max_list_cost.amount", problem.Excerpt(string(in.Cost.Amount))+" is not a number of cents above 0")
	}
	return &sessionv1.Budget{MaxCostNanoUsd: nano}, nil
}

// describe fills in what a session shows of its agent.
func (d *sessionDoc) describe(s *base, c *request, a *sessionv1.Agent) {
	doc := docOf(a.GetMetadataJson(), a.GetName(), a.GetModel())
	d.Tools, d.Agent = doc.Tools, agentJSON(a.GetName(), a.GetVersion(), a.GetDescription(), s.system(c, a), doc)
}

// mostDoc bounds what is kept with a session, in bytes.
const mostDoc = 262144

// json returns the document. A prompt that does not fit is left out.
func (d *sessionDoc) json() (string, error) {
	text := kept{Session: d}.json()
	if len(text) > mostDoc && d.Agent != nil {
		d.Agent["system"] = nil
		text = kept{Session: d}.json()
	}
	switch {
	case len(text) <= mostDoc:
		return text, nil
	case d.Agent == nil: // another interface has made the session
		return "", resource.Bad("metadata", "it needs more than 256 KiB")
	}
	return "", resource.Bad("agent", "its tools and texts need more than 256 KiB")
}

func (s *sessionsServer) createSession(c *request) (any, error) {
	var p sessionParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	switch {
	case len(p.Vaults) > 0:
		return nil, resource.Bad("vault_ids", "vaults are not served; users log in to MCP servers, and operators configure credentials")
	case p.Environment == "":
		return nil, resource.Bad("environment_id", "it is required")
	}
	a, err := s.agentOf(c, p.Agent)
	if err != nil {
		return nil, err
	}
	d := &sessionDoc{Environment: p.Environment, Budget: p.Budget, Resources: []map[string]any{}}
	d.describe(s.base, c, a)
	if d.Metadata, err = p.Metadata.merged(nil); err != nil {
		return nil, err
	}
	if err := d.mount(p.Resources); err != nil {
		return nil, err
	}
	want := &sessionv1.Session{Agent: a.GetName(), Environment: environmentName(p.Environment)}
	e, err := s.environmentOf(c, p.Environment)
	if err != nil {
		return nil, err
	}
	if isHosted(e) {
		if err := d.host(want); err != nil {
			return nil, err
		}
	}
	first, err := initial(p.Initial, d)
	if err != nil {
		return nil, err
	}
	text, err := d.json()
	if err != nil {
		return nil, err
	}
	if want.Budget, err = budgetOf(p.Budget); err != nil {
		return nil, err
	}
	want.MetadataJson = text
	if p.Title != nil {
		want.Title = *p.Title
	}
	return s.begin(c, want, d, first)
}

// begin creates a session, and then gives it what comes with it. A repetition does what the first attempt has not.
func (s *sessionsServer) begin(c *request, want *sessionv1.Session, d *sessionDoc, first []*sessionv1.CreateTurnRequest) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.wire.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: want, RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	session := made.GetSession()
	if version, _ := d.Agent["version"].(int32); version != max(1, session.GetAgentVersion()) { // the agent was changed meanwhile
		a, err := s.agent(c, session.GetAgent())
		if err != nil {
			return nil, err
		}
		d.describe(s.base, c, a)
		text, err := d.json()
		if err != nil {
			return nil, err
		}
		if _, err := s.wire.Sessions.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: session.GetName(), MetadataJson: &text, RequestId: c.Part(0)}); err != nil {
			return nil, err
		}
		session.MetadataJson = text
	}
	for i, r := range d.Resources {
		if err := s.files.copyFile(c, session.GetName(), r, c.Part(1000+i)); err != nil {
			return nil, err
		}
	}
	for i, turn := range first {
		turn.Parent, turn.RequestId = session.GetName(), c.Part(1+i)
		if _, err := s.wire.Sessions.CreateTurn(ctx, turn); err != nil {
			return nil, err
		}
		session.State = sessionv1.SessionState_SESSION_STATE_RUNNING
	}
	return sessionJSON(session), nil
}

// initial returns the turns of the events with which a session begins.
func initial(raw []json.RawMessage, d *sessionDoc) ([]*sessionv1.CreateTurnRequest, error) {
	if len(raw) > 50 {
		return nil, resource.Bad("initial_events", "there are at most 50")
	}
	var out []*sessionv1.CreateTurnRequest
	for i, r := range raw {
		field := fmt.Sprintf("initial_events[%d]", i)
		var e userEvent
		if json.Unmarshal(r, &e) != nil {
			return nil, resource.Bad(field, "it is no event")
		}
		if e.Type != "user.message" {
			return nil, resource.Bad(field+".type", problem.Excerpt(e.Type)+" is not served here, only user.message")
		}
		turn, err := e.message(field, d)
		if err != nil {
			return nil, err
		}
		out = append(out, turn)
	}
	return out, nil
}

// statusOf returns what a session does.
func statusOf(s *sessionv1.Session) string {
	switch {
	case s.ArchiveTime != nil:
		return "terminated"
	case s.GetState() == sessionv1.SessionState_SESSION_STATE_RUNNING:
		return "running"
	}
	return "idle"
}

// sessionDocOf returns what is kept with a session; one of another interface shows what it has.
func sessionDocOf(x *sessionv1.Session) *sessionDoc {
	if d := keptIn(x.GetMetadataJson()).Session; d != nil {
		return d
	}
	doc := docOf("", x.GetAgent(), "")
	d := &sessionDoc{
		Agent: agentJSON(x.GetAgent(), x.GetAgentVersion(), "", "", doc), Tools: doc.Tools, Metadata: map[string]string{}, Resources: []map[string]any{},
		Environment: environmentPrefix + "default",
	}
	if x.GetEnvironment() != "" {
		d.Environment = environmentPrefix + wire.LastPart(x.GetEnvironment())
	}
	return d
}

// sessionJSON returns a session as the wire has it.
func sessionJSON(x *sessionv1.Session) map[string]any {
	d := sessionDocOf(x)
	id, u := wire.LastPart(x.GetName()), x.GetUsage()
	var resources []any
	for i, r := range d.Resources {
		out := map[string]any{"id": fmt.Sprintf("sesrsc_%s_%d", id, i), "created_at": stamp(x.GetCreateTime().AsTime()), "updated_at": stamp(x.GetCreateTime().AsTime())}
		for k, v := range r {
			out[k] = v
		}
		resources = append(resources, out)
	}
	out := map[string]any{
		"id": sessionPrefix + id, "type": "session", "status": statusOf(x), "agent": d.Agent, "environment_id": d.Environment, "title": resource.Optional(x.GetTitle()),
		"metadata": d.Metadata, "resources": append([]any{}, resources...), "vault_ids": []any{}, "budget": nil, "outcome_evaluations": []any{},
		"usage": map[string]any{
			"input_tokens": u.GetInputTokens(), "output_tokens": u.GetOutputTokens(), "cache_read_input_tokens": u.GetCacheReadTokens(),
			"cache_creation": map[string]any{"ephemeral_5m_input_tokens": u.GetCacheWriteTokens(), "ephemeral_1h_input_tokens": 0},
		},
		"stats":      map[string]any{"duration_seconds": x.GetUpdateTime().AsTime().Sub(x.GetCreateTime().AsTime()).Seconds()},
		"created_at": stamp(x.GetCreateTime().AsTime()), "updated_at": stamp(x.GetUpdateTime().AsTime()), "archived_at": nil,
	}
	if len(d.Budget) > 0 {
		out["budget"] = d.Budget
	}
	if x.ArchiveTime != nil {
		out["archived_at"] = stamp(x.ArchiveTime.AsTime())
	}
	return out
}

// session reads the session of a request.
func (s *base) session(c *request) (*sessionv1.Session, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.wire.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: sessionName(c.ID[0])})
	if err == nil && !c.mayServe(got.GetSession().GetLabels()[queueLabel]) {
		return nil, resource.None("session", c.ID[0])
	}
	return got.GetSession(), err
}

func (s *sessionsServer) getSession(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	return sessionJSON(x), nil
}

func (s *sessionsServer) listResources(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	all, _ := sessionJSON(x)["resources"].([]any)
	return page(all, ""), nil
}
