package managed

import (
	"encoding/json"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// environmentDoc is what our environments have no place for.
type environmentDoc struct {
	Name     string            `json:"name"`
	Config   json.RawMessage   `json:"config"`
	Metadata map[string]string `json:"metadata"`
	Deleted  bool              `json:"deleted,omitempty"`
}

type environmentParams struct {
	Name        *string         `json:"name"`
	Description *string         `json:"description"`
	Config      json.RawMessage `json:"config"`
	Metadata    metadata        `json:"metadata"`
}

// cloud is the configuration of an environment.
type cloud struct {
	Type       string `json:"type"`
	Networking *struct {
		Type            string   `json:"type"`
		AllowedHosts    []string `json:"allowed_hosts"`
		PackageManagers bool     `json:"allow_package_managers"`
		MCPServers      bool     `json:"allow_mcp_servers"`
	} `json:"networking"`
	Packages map[string]json.RawMessage `json:"packages"`
}

// mostHosts is how many hosts the commands of an environment may reach.
const mostHosts = 256

// network returns what an environment's commands may reach, and its configuration as answers have it.
func (s *environmentsServer) network(c *request, config json.RawMessage) (rules []*sessionv1.AgentNetworkRule, shown json.RawMessage, err error) {
	var in cloud
	if len(config) > 0 && json.Unmarshal(config, &in) != nil {
		return nil, nil, resource.Bad("config", "it is not a configuration of an environment")
	}
	switch in.Type {
	case selfHosted:
		return nil, json.RawMessage(`{"type":"self_hosted"}`), nil
	case "cloud", "":
	default:
		return nil, nil, resource.Bad("config.type", problem.Excerpt(in.Type)+" is neither cloud, which runs commands in Fairlead's sandbox, nor self_hosted, for workers of your own")
	}
	for manager, list := range in.Packages {
		var all []string
		if json.Unmarshal(list, &all) == nil && len(all) > 0 {
			return nil, nil, resource.Bad("config.packages."+manager, "packages are not installed: the operator's image or the setup commands of an environment of Fairlead bring them")
		}
	}
	out := map[string]any{"type": "cloud", "networking": map[string]any{"type": "unrestricted"}, "packages": map[string]any{
		"type": "packages", "apt": []any{}, "cargo": []any{}, "gem": []any{}, "go": []any{}, "npm": []any{}, "pip": []any{},
	}}
	switch n := in.Networking; {
	case n == nil || n.Type == "unrestricted":
		ctx, cancel := s.within(c)
		defer cancel()
		can, err := s.agentClient.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
		if err != nil {
			return nil, nil, err
		}
		if can.GetSandbox().GetNetwork() == "allowlist" { // with none, the operator lets nothing out, and asking would fail
			rules = append(rules, &sessionv1.AgentNetworkRule{Host: "*"})
		}
	case n.Type == "limited":
		if n.PackageManagers {
			return nil, nil, resource.Bad("config.networking.allow_package_managers", "it is not served; name the hosts of the package managers in allowed_hosts")
		}
		if err := wire.TooMany("config.networking.allowed_hosts", len(n.AllowedHosts), mostHosts); err != nil {
			return nil, nil, err
		}
		for _, host := range n.AllowedHosts {
			rules = append(rules, &sessionv1.AgentNetworkRule{Host: strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://")})
		}
		if n.AllowedHosts == nil {
			n.AllowedHosts = []string{}
		}
		out["networking"] = map[string]any{"type": "limited", "allowed_hosts": n.AllowedHosts, "allow_package_managers": false, "allow_mcp_servers": n.MCPServers}
	default:
		return nil, nil, resource.Bad("config.networking.type", problem.Excerpt(n.Type)+" is neither unrestricted nor limited")
	}
	shown, err = json.Marshal(out)
	return rules, shown, err
}

func environmentName(id string) string {
	return "environments/" + strings.TrimPrefix(id, environmentPrefix)
}

// environmentJSON returns an environment as the wire has it.
func environmentJSON(e *sessionv1.Environment) map[string]any {
	d := keptIn(e.GetSpec().GetMetadataJson()).Environment
	if d == nil { // another interface has made it
		var hosts []string
		for _, r := range e.GetSpec().GetNetwork() {
			hosts = append(hosts, r.GetHost())
		}
		//nolint:errchkjson // texts cannot fail
		shown, _ := json.Marshal(map[string]any{"type": "cloud", "packages": map[string]any{"type": "packages"}, "networking": map[string]any{
			"type": "limited", "allowed_hosts": append([]string{}, hosts...), "allow_package_managers": false, "allow_mcp_servers": true,
		}})
		d = &environmentDoc{Name: wire.LastPart(e.GetName()), Config: shown, Metadata: map[string]string{}}
	}
	out := map[string]any{
		"id": environmentPrefix + wire.LastPart(e.GetName()), "type": "environment", "name": d.Name, "description": resource.Optional(e.GetSpec().GetDescription()), "config": d.Config,
		"metadata": d.Metadata, "created_at": stamp(e.GetCreateTime().AsTime()), "updated_at": stamp(e.GetUpdateTime().AsTime()), "archived_at": nil,
	}
	if e.ArchiveTime != nil {
		out["archived_at"] = stamp(e.ArchiveTime.AsTime())
	}
	return out
}

func (s *environmentsServer) createEnvironment(c *request) (any, error) {
	var p environmentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if p.Name == nil || *p.Name == "" {
		return nil, resource.Bad("name", "it is required")
	}
	spec := &sessionv1.EnvironmentSpec{}
	d := environmentDoc{Name: *p.Name}
	var err error
	if d.Metadata, err = p.Metadata.merged(nil); err != nil {
		return nil, err
	}
	if spec.Network, d.Config, err = s.network(c, p.Config); err != nil {
		return nil, err
	}
	if p.Description != nil {
		spec.Description = *p.Description
	}
	spec.MetadataJson = kept{Environment: &d}.json()
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.environmentClient.CreateEnvironment(ctx, &sessionv1.CreateEnvironmentRequest{Spec: spec, RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return environmentJSON(made.GetEnvironment()), nil
}

// environment reads an environment that is not deleted.
func (s *environmentsServer) environment(c *request) (*sessionv1.Environment, error) {
	return s.environmentOf(c, c.ID[0])
}

// environmentOf reads an environment that is not deleted.
func (s *base) environmentOf(c *request, id string) (*sessionv1.Environment, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.environmentClient.GetEnvironment(ctx, &sessionv1.GetEnvironmentRequest{Name: environmentName(id)})
	if err != nil {
		return nil, err
	}
	if d := keptIn(got.GetEnvironment().GetSpec().GetMetadataJson()).Environment; d != nil && d.Deleted {
		return nil, resource.None("environment", id)
	}
	return got.GetEnvironment(), nil
}

func (s *environmentsServer) getEnvironment(c *request) (any, error) {
	e, err := s.environment(c)
	if err != nil {
		return nil, err
	}
	return environmentJSON(e), nil
}

func (s *environmentsServer) updateEnvironment(c *request) (any, error) {
	var p environmentParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	return s.changeEnvironment(c, func(spec *sessionv1.EnvironmentSpec, d *environmentDoc) (err error) {
		if p.Name != nil {
			d.Name = *p.Name
		}
		if _, ok := resource.Fields(c.Body)["description"]; ok {
			spec.Description = ""
			if p.Description != nil {
				spec.Description = *p.Description
			}
		}
		if len(p.Config) > 0 && string(p.Config) != "null" {
			if was := configType(d.Config); was != configType(p.Config) {
				return resource.Bad("config.type", "it is "+was+", and cannot be changed; create another environment")
			}
			if spec.Network, d.Config, err = s.network(c, p.Config); err != nil {
				return err
			}
		}
		d.Metadata, err = p.Metadata.merged(d.Metadata)
		return err
	})
}

// changeEnvironment makes a new version of an environment that the wire has made.
func (s *environmentsServer) changeEnvironment(c *request, change func(*sessionv1.EnvironmentSpec, *environmentDoc) error) (any, error) {
	e, err := s.environment(c)
	if err != nil {
		return nil, err
	}
	d := keptIn(e.GetSpec().GetMetadataJson()).Environment
	if d == nil {
		return nil, resource.Bad("environment", "it was made at /v1/environments, and is changed there")
	}
	if err := change(e.Spec, d); err != nil {
		return nil, err
	}
	e.Spec.MetadataJson = kept{Environment: d}.json()
	ctx, cancel := s.within(c)
	defer cancel()
	made, err := s.environmentClient.UpdateEnvironment(ctx, &sessionv1.UpdateEnvironmentRequest{Name: e.GetName(), Spec: e.Spec, ExpectedVersion: e.GetVersion(), RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return environmentJSON(made.GetEnvironment()), nil
}

func (s *environmentsServer) archiveEnvironment(c *request) (any, error) {
	if _, err := s.environment(c); err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	done, err := s.environmentClient.ArchiveEnvironment(ctx, &sessionv1.ArchiveEnvironmentRequest{Name: environmentName(c.ID[0]), RequestId: c.Key})
	if err != nil {
		return nil, err
	}
	return environmentJSON(done.GetEnvironment()), nil
}

// deleteEnvironment archives an environment, and marks it so that the wire shows it no more: ours cannot be deleted,
// because sessions keep their versions.
func (s *environmentsServer) deleteEnvironment(c *request) (any, error) {
	if _, err := s.changeEnvironment(c, func(_ *sessionv1.EnvironmentSpec, d *environmentDoc) error {
		d.Deleted = true
		return nil
	}); err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	name := environmentName(c.ID[0])
	if _, err := s.environmentClient.ArchiveEnvironment(ctx, &sessionv1.ArchiveEnvironmentRequest{Name: name, RequestId: c.Part(1)}); err != nil {
		return nil, err
	}
	return map[string]any{"id": environmentPrefix + wire.LastPart(name), "type": "environment_deleted"}, nil
}

func (s *environmentsServer) listEnvironments(c *request) (any, error) {
	l, err := c.list(20, 100, true)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var data []any
	for token := l.page; ; {
		got, err := s.environmentClient.ListEnvironments(ctx, &sessionv1.ListEnvironmentsRequest{PageSize: int32(l.limit), PageToken: token, ShowArchived: l.archived})
		if err != nil {
			return nil, err
		}
		for _, e := range got.GetEnvironments() {
			if d := keptIn(e.GetSpec().GetMetadataJson()).Environment; d == nil || !d.Deleted {
				data = append(data, environmentJSON(e))
			}
		}
		if token = got.GetNextPageToken(); token == "" || len(data) > 0 {
			return page(data, token), nil
		}
	}
}
