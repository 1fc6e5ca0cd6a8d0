package openaiagents

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// agentDoc is what our agents have no place for: it is in their metadata.
type agentDoc struct {
	Name      string            `json:"name,omitempty"`
	Model     string            `json:"model"` // as the client named it
	Tools     []tool            `json:"tools"`
	Reasoning *reasoning        `json:"reasoning,omitempty"`
	Text      textConfig        `json:"text"`
	Metadata  map[string]string `json:"metadata"`
	// Inline marks an agent that a session has brought: lists leave it out.
	Inline bool `json:"inline,omitempty"`
}

// docName is the key of a document in the metadata of an agent.
const docName = "openai_agent"

type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type textConfig struct {
	Format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema,omitempty"`
	} `json:"format"`
	Verbosity string `json:"verbosity"`
}

// agentParams are the parameters of an agent, reusable or of a session.
type agentParams struct {
	Name         *string         `json:"name"`
	Model        *string         `json:"model"`
	Instructions *string         `json:"instructions"`
	Tools        []tool          `json:"tools"`
	Reasoning    *reasoning      `json:"reasoning"`
	Text         *textConfig     `json:"text"`
	Metadata     metadata        `json:"metadata"`
	ServiceTier  *string         `json:"service_tier"`
	MultiAgent   *multiAgent     `json:"multi_agent"`
	Compaction   *compaction     `json:"compaction"`
	Experimental map[string]bool `json:"experimental"`
}

type multiAgent struct {
	Enabled bool `json:"enabled"`
}

type compaction struct {
	Async *bool `json:"async"`
}

// unserved refuses what an agent of this wire cannot have. in is where the parameters are, such as "agent.".
func (p agentParams) unserved(in string) error {
	switch {
	case p.ServiceTier != nil && *p.ServiceTier != "auto" && *p.ServiceTier != "default":
		return resource.Bad(in+"service_tier", problem.Excerpt(*p.ServiceTier)+" is not served, only auto and default")
	case p.MultiAgent != nil && p.MultiAgent.Enabled:
		return resource.Bad(in+"multi_agent.enabled", "it is not served; the subagents of Fairlead's agents are at /v1/agents")
	case p.Compaction != nil && p.Compaction.Async != nil && *p.Compaction.Async:
		return resource.Bad(in+"compaction.async", "it is not served; a turn waits while its conversation is made shorter")
	case p.Text != nil && p.Text.Format.Type != "" && p.Text.Format.Type != "text" && p.Text.Format.Type != "json_schema":
		return resource.Bad(in+"text.format.type", problem.Excerpt(p.Text.Format.Type)+" is neither text nor json_schema")
	}
	for name, on := range p.Experimental {
		if on {
			return resource.Bad(in+"experimental."+problem.Excerpt(name), "it is not served")
		}
	}
	return nil
}

// apply changes a spec and what is kept with it as the parameters say: a field that is not there stays.
func (s *base) apply(c *request, p agentParams, has map[string]json.RawMessage, in string, spec *sessionv1.AgentSpec, d *agentDoc) (err error) {
	if err := p.unserved(in); err != nil {
		return err
	}
	if _, ok := has["name"]; ok {
		d.Name = ""
		if p.Name != nil {
			d.Name = *p.Name
		}
	}
	if p.Model != nil {
		if d.Model = *p.Model; d.Model == "" {
			return resource.Bad(in+"model", "it is empty")
		}
		if spec.Model, err = s.model(c, d.Model, in+"model"); err != nil {
			return err
		}
	}
	if _, ok := has["instructions"]; ok {
		spec.Prompt = ""
		if p.Instructions != nil {
			spec.Prompt = *p.Instructions
		}
	}
	if _, ok := has["tools"]; ok || d.Tools == nil {
		if d.Tools, err = resolve(p.Tools, in+"tools"); err != nil {
			return err
		}
		grant(spec, d.Tools)
	}
	if p.Reasoning != nil {
		d.Reasoning = p.Reasoning
	}
	if p.Text != nil {
		d.Text = *p.Text
		if spec.OutputSchemaJson = ""; d.Text.Format.Type == "json_schema" {
			if spec.OutputSchemaJson = string(d.Text.Format.Schema); !strings.HasPrefix(spec.OutputSchemaJson, "{") {
				return resource.Bad(in+"text.format.schema", "it is not a JSON Schema")
			}
		}
	}
	if d.Text.Format.Type == "" {
		d.Text.Format.Type = "text"
	}
	if d.Text.Verbosity == "" {
		d.Text.Verbosity = "medium"
	}
	if _, ok := has["metadata"]; ok || d.Metadata == nil {
		if d.Metadata, err = p.Metadata.checked(); err != nil {
			return err
		}
	}
	spec.MetadataJson = keep(spec.GetMetadataJson(), docName, d)
	return nil
}

// model returns a model as we name it.
func (s *base) model(c *request, id, field string) (string, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	can, err := s.agentClient.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
	if err != nil {
		return "", err
	}
	if slices.Contains(can.GetModels(), id) || strings.Contains(id, ":") {
		return id, nil
	}
	for _, m := range can.GetModels() {
		if _, name, ok := strings.Cut(m, ":"); ok && name == id {
			return m, nil
		}
	}
	if strings.HasPrefix(id, "gpt-") {
		return "openai:" + id, nil
	}
	return "", resource.Bad(field, problem.Excerpt(id)+" is not a model of this server; GET /openai/v1/models lists them, as provider:model")
}

func agentName(id string) string { return "agents/" + strings.TrimPrefix(id, "agents/") }

// docOf returns what the wire shows of an agent; one of another interface has its name alone.
func docOf(metadataJSON, name, model string) *agentDoc {
	d := &agentDoc{}
	if !kept(metadataJSON, docName, d) {
		d.Name, d.Model, d.Tools, d.Metadata = wire.LastPart(name), model, []tool{}, map[string]string{}
		d.Text.Format.Type, d.Text.Verbosity = "text", "medium"
	}
	return d
}

// configuration returns an agent as a session shows it.
func (d *agentDoc) configuration(name, instructions string) map[string]any {
	effort := reasoning{}
	if d.Reasoning != nil {
		effort = *d.Reasoning
	}
	return map[string]any{
		"id": wire.LastPart(name), "name": resource.Optional(d.Name), "instructions": resource.Optional(instructions), "model": d.Model, "tools": d.Tools, "reasoning": effort, "text": d.Text,
		"multi_agent": map[string]any{"enabled": false, "max_concurrent_subagents": nil}, "service_tier": "auto",
	}
}

// agentJSON returns a reusable agent as the wire has it.
func agentJSON(a *sessionv1.Agent, instructions string) map[string]any {
	d := docOf(a.GetMetadataJson(), a.GetName(), a.GetModel())
	out := d.configuration(a.GetName(), instructions)
	out["object"], out["metadata"] = "agent", d.Metadata
	out["created_at"], out["updated_at"] = a.GetCreateTime().GetSeconds(), a.GetUpdateTime().GetSeconds()
	return out
}

// agent reads an agent that is not deleted.
func (s *base) agent(c *request, id string) (*sessionv1.Agent, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.agentClient.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: agentName(id)})
	if err == nil && got.GetAgent().ArchiveTime != nil {
		return nil, resource.None("agent", id)
	}
	return got.GetAgent(), err
}

// spec reads the newest version of an agent, which operators alone may.
func (s *base) spec(c *request, a *sessionv1.Agent) (*sessionv1.AgentSpec, error) {
	if a.GetVersion() == 0 {
		return nil, resource.Bad("agent", wire.LastPart(a.GetName())+" is of the server's configuration, and cannot be changed here")
	}
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.agentClient.GetAgentVersion(ctx, &sessionv1.GetAgentVersionRequest{Name: a.GetName() + "/versions/" + strconv.Itoa(int(a.GetVersion()))})
	return got.GetVersion().GetSpec(), err
}

// instructions returns an agent's prompt; "" for callers who may not read it.
func (s *base) instructions(c *request, a *sessionv1.Agent) string {
	spec, err := s.spec(c, a)
	if err != nil {
		return ""
	}
	return spec.GetPrompt()
}

func (s *agentsServer) createAgent(c *request) (any, error) {
	var p agentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if p.Model == nil {
		return nil, resource.Bad("model", "it is required")
	}
	spec, d := &sessionv1.AgentSpec{}, &agentDoc{}
	if err := s.apply(c, p, resource.Fields(c.Body), "", spec, d); err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.agentClient.CreateAgent(ctx, &sessionv1.CreateAgentRequest{Spec: spec, RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return agentJSON(made.GetAgent(), spec.GetPrompt()), nil
}

func (s *agentsServer) getAgent(c *request) (any, error) {
	a, err := s.agent(c, c.ID[0])
	if err != nil {
		return nil, err
	}
	return agentJSON(a, s.instructions(c, a)), nil
}

func (s *agentsServer) updateAgent(c *request) (any, error) {
	var p agentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	return s.changeAgent(c, func(spec *sessionv1.AgentSpec, d *agentDoc) error {
		return s.apply(c, p, resource.Fields(c.Body), "", spec, d)
	})
}

// changeAgent makes a new version of an agent.
func (s *agentsServer) changeAgent(c *request, change func(*sessionv1.AgentSpec, *agentDoc) error) (any, error) {
	a, err := s.agent(c, c.ID[0])
	if err != nil {
		return nil, err
	}
	spec, err := s.spec(c, a)
	if err != nil {
		return nil, err
	}
	d := &agentDoc{}
	if !kept(spec.GetMetadataJson(), docName, d) {
		return nil, resource.Bad("agent", wire.LastPart(a.GetName())+" was made at another interface, and is changed there")
	}
	if err := change(spec, d); err != nil {
		return nil, err
	}
	if spec.GetMetadataJson() == a.GetMetadataJson() && spec.GetPrompt() == s.instructions(c, a) {
		return agentJSON(a, spec.GetPrompt()), nil // nothing changes, so there is no new version
	}
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.agentClient.UpdateAgent(ctx, &sessionv1.UpdateAgentRequest{Name: a.GetName(), Spec: spec, ExpectedVersion: a.GetVersion(), RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return agentJSON(made.GetAgent(), spec.GetPrompt()), nil
}

// deleteAgent archives an agent: its sessions keep their version of it.
func (s *agentsServer) deleteAgent(c *request) (any, error) {
	a, err := s.agent(c, c.ID[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	if _, err := s.agentClient.ArchiveAgent(ctx, &sessionv1.ArchiveAgentRequest{Name: a.GetName(), RequestId: c.Key}); err != nil {
		return nil, err
	}
	return map[string]any{"id": wire.LastPart(a.GetName()), "object": "agent.deleted", "deleted": true}, nil
}

func (s *agentsServer) listAgents(c *request) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var whole []entry
	req := &sessionv1.ListAgentsRequest{PageSize: 1000}
	for a, err := range wire.All(ctx, s.agentClient.ListAgents, req, (*sessionv1.ListAgentsResponse).GetAgents) {
		if err != nil {
			return nil, err
		}
		if !docOf(a.GetMetadataJson(), "", "").Inline {
			whole = append(whole, entry{wire.LastPart(a.GetName()), agentJSON(a, "")})
		}
	}
	slices.SortStableFunc(whole, func(a, b entry) int {
		x, _ := a.body["created_at"].(int64)
		y, _ := b.body["created_at"].(int64)
		if x != y {
			return int(x - y)
		}
		return strings.Compare(a.id, b.id)
	})
	return l.page(whole)
}
