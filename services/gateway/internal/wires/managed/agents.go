package managed

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// agentDoc is what our agents have no place for: it is in their metadata.
type agentDoc struct {
	Name     string            `json:"name"`
	Model    modelDoc          `json:"model"`
	Tools    []tool            `json:"tools"`
	Servers  []mcpServer       `json:"mcp_servers"`
	Metadata map[string]string `json:"metadata"`
}

// modelDoc is a model as a client named it.
type modelDoc struct {
	ID     string          `json:"id"`
	Effort json.RawMessage `json:"effort,omitempty"`
	Speed  string          `json:"speed,omitempty"`
}

// kept is the metadata of a resource of ours that the wire has made.
type kept struct {
	Agent       *agentDoc       `json:"managed_agent,omitempty"`
	Environment *environmentDoc `json:"managed_environment,omitempty"`
	Session     *sessionDoc     `json:"managed_session,omitempty"`
}

func (k kept) json() string {
	b, _ := json.Marshal(k) //nolint:errchkjson // it has only what came as JSON
	return string(b)
}

// keptIn reads the metadata of a resource; one that the wire has not made has none.
func keptIn(text string) (k kept) {
	_ = wire.DecodeJSON([]byte(text), &k) // every digit of a schema stays
	return k
}

// docOf returns what the wire shows of an agent; one of another interface has its name alone.
func docOf(metadata, name, model string) agentDoc {
	if d := keptIn(metadata).Agent; d != nil {
		return *d
	}
	return agentDoc{Name: wire.LastPart(name), Model: modelDoc{ID: model}, Tools: []tool{}, Servers: []mcpServer{}, Metadata: map[string]string{}}
}

// agentParams are the parameters of an agent.
type agentParams struct {
	Name        *string         `json:"name"`
	Model       json.RawMessage `json:"model"`
	Description *string         `json:"description"`
	System      *string         `json:"system"`
	Tools       []tool          `json:"tools"`
	Servers     []mcpServer     `json:"mcp_servers"`
	Skills      []any           `json:"skills"`
	Multiagent  any             `json:"multiagent"`
	Metadata    metadata        `json:"metadata"`
	Version     *int32          `json:"version"`
	Identity    *struct {
		Type string `json:"type"`
	} `json:"execution_identity"`
}

// apply changes a spec and what is kept with it as the parameters say: a field that is not there stays.
func (s *agentsServer) apply(c *request, p agentParams, spec *sessionv1.AgentSpec, d *agentDoc) error {
	has := resource.Fields(c.Body)
	switch {
	case len(p.Skills) > 0:
		return resource.Bad("skills", "skills of this API are not served; Fairlead's own are at /v1/skills")
	case p.Multiagent != nil:
		return resource.Bad("multiagent", "it is not served; Fairlead's own subagents are at /v1/agents")
	case p.Identity != nil && p.Identity.Type != "service_account":
		return resource.Bad("execution_identity.type", problem.Excerpt(p.Identity.Type)+" is not served, only service_account")
	}
	if p.Name != nil {
		d.Name = *p.Name
	}
	if len([]rune(d.Name)) > 256 || d.Name == "" {
		return resource.Bad("name", "it is required, and has at most 256 characters")
	}
	if _, ok := has["model"]; ok {
		var err error
		if d.Model, spec.Model, err = s.model(c, p.Model); err != nil {
			return err
		}
	}
	if _, ok := has["description"]; ok {
		spec.Description = ""
		if p.Description != nil {
			spec.Description = *p.Description
		}
	}
	if _, ok := has["system"]; ok {
		spec.Prompt = ""
		if p.System != nil {
			spec.Prompt = *p.System
		}
		if len([]rune(spec.Prompt)) > 100_000 {
			return resource.Bad("system", "it has more than 100,000 characters")
		}
	}
	if _, ok := has["mcp_servers"]; ok {
		if d.Servers = p.Servers; d.Servers == nil {
			d.Servers = []mcpServer{}
		}
		if len(d.Servers) > 20 {
			return resource.Bad("mcp_servers", "there are at most 20")
		}
		for i, m := range d.Servers {
			if m.Type != "url" {
				return resource.Bad(fmt.Sprintf("mcp_servers[%d].type", i), "only url is served")
			}
		}
	}
	_, toolsToo := has["tools"]
	_, serversToo := has["mcp_servers"]
	if toolsToo || serversToo || d.Tools == nil {
		tools := d.Tools
		if toolsToo {
			tools = p.Tools
		}
		var err error
		if d.Tools, err = resolve(tools, d.Servers); err != nil {
			return err
		}
		grant(spec, d.Tools, d.Servers)
	}
	var err error
	if d.Metadata, err = p.Metadata.merged(d.Metadata); err != nil {
		return err
	}
	spec.MetadataJson = kept{Agent: d}.json()
	return nil
}

// model returns a model as the client named it, and as we do.
func (s *agentsServer) model(c *request, raw json.RawMessage) (d modelDoc, ours string, err error) {
	if json.Unmarshal(raw, &d.ID) != nil {
		if json.Unmarshal(raw, &d) != nil {
			return d, "", resource.Bad("model", "it is neither a name nor an object with an id")
		}
	}
	if len(d.Effort) > 0 && d.Effort[0] == '"' {
		d.Effort = json.RawMessage(`{"type":` + string(d.Effort) + `}`)
	}
	if d.ID == "" {
		return d, "", resource.Bad("model", "it is required")
	}
	ctx, cancel := s.within(c)
	defer cancel()
	can, err := s.agentClient.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
	if err != nil {
		return d, "", err
	}
	for _, m := range can.GetModels() {
		if m == d.ID {
			return d, m, nil
		}
	}
	for _, m := range can.GetModels() {
		if _, name, ok := strings.Cut(m, ":"); ok && name == d.ID {
			return d, m, nil
		}
	}
	if strings.Contains(d.ID, ":") {
		return d, d.ID, nil
	}
	if strings.HasPrefix(d.ID, "claude-") {
		return d, "anthropic:" + d.ID, nil
	}
	return d, "", resource.Bad("model", problem.Excerpt(d.ID)+" is not a model of this server; GET /v1/models lists them, as provider:model")
}

// agentJSON returns an agent as the wire has it.
func agentJSON(name string, version int32, description, system string, d agentDoc) map[string]any {
	return map[string]any{
		"id": agentPrefix + wire.LastPart(name), "type": "agent", "version": max(1, version), "name": d.Name, "description": resource.Optional(description),
		"model": d.Model, "system": resource.Optional(system), "tools": d.Tools, "mcp_servers": d.Servers, "skills": []any{}, "multiagent": nil,
	}
}

// whole adds what a session's copy of an agent leaves out.
func whole(a *sessionv1.Agent, system string) map[string]any {
	d := docOf(a.GetMetadataJson(), a.GetName(), a.GetModel())
	out := agentJSON(a.GetName(), a.GetVersion(), a.GetDescription(), system, d)
	out["metadata"], out["execution_identity"], out["archived_at"] = d.Metadata, map[string]any{"type": "service_account"}, nil
	out["created_at"], out["updated_at"] = stamp(a.GetCreateTime().AsTime()), stamp(a.GetUpdateTime().AsTime())
	if a.ArchiveTime != nil {
		out["archived_at"] = stamp(a.ArchiveTime.AsTime())
	}
	return out
}

func agentName(id string) string { return "agents/" + strings.TrimPrefix(id, agentPrefix) }

func (s *agentsServer) createAgent(c *request) (any, error) {
	var p agentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if p.Name == nil {
		return nil, resource.Bad("name", "it is required")
	}
	if len(p.Model) == 0 {
		return nil, resource.Bad("model", "it is required")
	}
	spec, d := &sessionv1.AgentSpec{}, agentDoc{Servers: []mcpServer{}}
	if err := s.apply(c, p, spec, &d); err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.agentClient.CreateAgent(ctx, &sessionv1.CreateAgentRequest{Spec: spec, RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return whole(made.GetAgent(), spec.GetPrompt()), nil
}

// version reads a version of an agent.
func (s *base) version(c *request, name string, version int32) (*sessionv1.AgentVersion, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.agentClient.GetAgentVersion(ctx, &sessionv1.GetAgentVersionRequest{Name: name + "/versions/" + strconv.Itoa(int(version))})
	return got.GetVersion(), err
}

func (s *base) agent(c *request, name string) (*sessionv1.Agent, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.agentClient.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: name})
	return got.GetAgent(), err
}

// system returns an agent's prompt, which operators alone may read.
func (s *base) system(c *request, a *sessionv1.Agent) string {
	if a.GetVersion() == 0 {
		return ""
	}
	v, err := s.version(c, a.GetName(), a.GetVersion())
	if err != nil {
		return ""
	}
	return v.GetSpec().GetPrompt()
}

func (s *agentsServer) getAgent(c *request) (any, error) {
	a, err := s.agent(c, agentName(c.ID[0]))
	if err != nil {
		return nil, err
	}
	if text := c.R.URL.Query().Get("version"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return nil, resource.Bad("version", problem.Excerpt(text)+" is not the number of a version")
		}
		if int32(n) != a.GetVersion() {
			v, err := s.version(c, a.GetName(), int32(n))
			if err != nil {
				return nil, err
			}
			return ofVersion(a, v), nil
		}
	}
	return whole(a, s.system(c, a)), nil
}

// ofVersion returns an agent as it was in a version.
func ofVersion(a *sessionv1.Agent, v *sessionv1.AgentVersion) map[string]any {
	return whole(&sessionv1.Agent{
		Name: a.GetName(), Version: v.GetVersion(), Description: v.GetSpec().GetDescription(), Model: v.GetSpec().GetModel(), MetadataJson: v.GetSpec().GetMetadataJson(),
		CreateTime: a.GetCreateTime(), UpdateTime: v.GetCreateTime(), ArchiveTime: a.GetArchiveTime(),
	}, v.GetSpec().GetPrompt())
}

func (s *agentsServer) updateAgent(c *request) (any, error) {
	var p agentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	a, err := s.agent(c, agentName(c.ID[0]))
	if err != nil {
		return nil, err
	}
	if a.GetVersion() == 0 {
		return nil, resource.Bad("agent", "it is of the server's configuration, and cannot be changed here")
	}
	if p.Version != nil && *p.Version > a.GetVersion() {
		return nil, resource.Bad("version", fmt.Sprintf("the newest version is %d", a.GetVersion()))
	}
	expected := a.GetVersion()
	if p.Version != nil {
		expected = *p.Version
	}
	v, err := s.version(c, a.GetName(), a.GetVersion())
	if err != nil {
		return nil, err
	}
	spec, d := v.GetSpec(), docOf(a.GetMetadataJson(), a.GetName(), a.GetModel())
	before := spec.GetMetadataJson()
	if err := s.apply(c, p, spec, &d); err != nil {
		return nil, err
	}
	_, described := resource.Fields(c.Body)["description"]
	_, prompted := resource.Fields(c.Body)["system"]
	if spec.GetMetadataJson() == before && !described && !prompted && expected == a.GetVersion() {
		return whole(a, spec.GetPrompt()), nil // nothing changes, so there is no new version
	}
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.agentClient.UpdateAgent(ctx, &sessionv1.UpdateAgentRequest{Name: a.GetName(), Spec: spec, ExpectedVersion: expected, RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return whole(made.GetAgent(), spec.GetPrompt()), nil
}

func (s *agentsServer) archiveAgent(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	done, err := s.agentClient.ArchiveAgent(ctx, &sessionv1.ArchiveAgentRequest{Name: agentName(c.ID[0]), RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return whole(done.GetAgent(), s.system(c, done.GetAgent())), nil
}

func (s *agentsServer) listAgents(c *request) (any, error) {
	l, err := c.list(20, 100, true)
	if err != nil {
		return nil, err
	}
	keep, err := l.between()
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var data []any
	for token := l.page; ; {
		got, err := s.agentClient.ListAgents(ctx, &sessionv1.ListAgentsRequest{PageSize: int32(l.limit), PageToken: token, ShowArchived: l.archived})
		if err != nil {
			return nil, err
		}
		for _, a := range got.GetAgents() {
			if keep(a.GetCreateTime().AsTime()) {
				data = append(data, whole(a, s.system(c, a)))
			}
		}
		if token = got.GetNextPageToken(); token == "" || len(data) > 0 {
			return page(data, token), nil
		}
	}
}

func (s *agentsServer) listVersions(c *request) (any, error) {
	l, err := c.list(20, 100, false)
	if err != nil {
		return nil, err
	}
	a, err := s.agent(c, agentName(c.ID[0]))
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.agentClient.ListAgentVersions(ctx, &sessionv1.ListAgentVersionsRequest{Parent: a.GetName(), PageSize: int32(l.limit), PageToken: l.page})
	if err != nil {
		return nil, err
	}
	var data []any
	for _, v := range got.GetVersions() {
		data = append(data, ofVersion(a, v))
	}
	return page(data, got.GetNextPageToken()), nil
}
