package openaiagents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// environmentParams is the environment of a new session.
type environmentParams struct {
	Type     string           `json:"type"`
	Existing *string          `json:"environment_id"`
	Template *string          `json:"environment_template_id"`
	Network  *networkParams   `json:"network"`
	Setup    []setupCommand   `json:"setup_commands"`
	Env      map[string]any   `json:"env"`
	Packages map[string][]any `json:"packages"`
	Files    []any            `json:"files"`
	Skills   []any            `json:"skills"`
	Plugins  []any            `json:"plugins"`
	Size     *string          `json:"container_size"`
	Folders  []any            `json:"capability_directories"`
	Desktop  *struct {
		Enabled bool `json:"enabled"`
	} `json:"desktop"`
}

type networkParams struct {
	Access  string   `json:"access"`
	Allowed []string `json:"allowed_domains"`
	Blocked []string `json:"blocked_domains"`
}

type setupCommand struct {
	Command string  `json:"command"`
	Folder  *string `json:"cwd"`
}

// place is where the commands of a session run.
type surroundings struct {
	shown map[string]any             // as answers have it, without its id
	spec  *sessionv1.EnvironmentSpec // of one that the session brings; nil: none
	name  string                     // of one that there is
	none  bool                       // the session has no tools for commands and files
}

// unserved refuses what an environment here cannot have.
func (p environmentParams) unserved() error {
	count := 0
	for _, list := range p.Packages {
		count += len(list)
	}
	for _, x := range []struct {
		field, why string
		has        bool
	}{
		{"environment_id", "environments that are made in advance are not served; leave it out", p.Existing != nil},
		{"env", "it is not served, because it may have secrets; an environment at /v1/environments has variables, and environment_template_id names it", len(p.Env) > 0},
		{"packages", "packages are not installed: the operator's image or setup_commands bring them", count > 0},
		{"files", "files are not served here; write them at /v1/{session}/files", len(p.Files) > 0},
		{"skills", "skills of this API are not served; Fairlead's own are at /v1/skills", len(p.Skills) > 0},
		{"plugins", "it is not served", len(p.Plugins) > 0},
		{"container_size", "it is not served; the limits of an environment at /v1/environments say it", p.Size != nil},
		{"capability_directories", "it is not served", len(p.Folders) > 0},
		{"desktop", "it is not served", p.Desktop != nil && p.Desktop.Enabled},
	} {
		if x.has {
			return resource.Bad("environment."+x.field, x.why)
		}
	}
	return nil
}

// surroundings returns what a session's environment becomes. Nothing is made yet.
func (s *base) surroundings(c *request, p *environmentParams) (x surroundings, err error) {
	if p == nil || p.Type == "" {
		return x, resource.Bad("environment", `it is required, such as {"type":"none"} or {"type":"openai_hosted"}`)
	}
	switch p.Type {
	case "none":
		return surroundings{shown: map[string]any{"type": "none"}, none: true}, nil
	case "openai_hosted":
	case "self_hosted":
		return x, resource.Bad("environment.type", "self_hosted is not served: the protocol of its executor is not public; openai_hosted runs commands in Fairlead's sandbox")
	default:
		return x, resource.Bad("environment.type", problem.Excerpt(p.Type)+" is neither none nor openai_hosted")
	}
	if err := p.unserved(); err != nil {
		return x, err
	}
	network := map[string]any{"access": "disabled", "allowed_domains": []string{}}
	x.shown = map[string]any{
		"type": "openai_hosted", "capability_directories": []any{}, "files": []any{}, "network": network, "plugins": []any{}, "skills": []any{},
		"packages": map[string]any{"npm": []any{}, "python": []any{}, "system": []any{}},
	}
	if p.Template != nil {
		if p.Network != nil || len(p.Setup) > 0 {
			return x, resource.Bad("environment.environment_template_id", "it goes without network and setup_commands: the template has them")
		}
		x.name = "environments/" + strings.TrimPrefix(*p.Template, "environments/")
		return x, nil
	}
	spec := &sessionv1.EnvironmentSpec{Description: "Of sessions of the OpenAI Agents API."}
	if spec.Network, err = s.network(c, p.Network, network); err != nil {
		return x, err
	}
	for i, command := range p.Setup {
		field := fmt.Sprintf("environment.setup_commands[%d]", i)
		if command.Command == "" {
			return x, resource.Bad(field+".command", "it is required")
		}
		if command.Folder != nil && *command.Folder != "/workspace" {
			return x, resource.Bad(field+".cwd", problem.Excerpt(*command.Folder)+" is not served; commands run in /workspace")
		}
		spec.Setup = append(spec.Setup, command.Command)
	}
	if len(spec.GetNetwork()) > 0 || len(spec.GetSetup()) > 0 {
		x.spec = spec
	}
	return x, nil
}

// network returns what commands may reach, and fills in how answers have it.
func (s *base) network(c *request, p *networkParams, shown map[string]any) (rules []*sessionv1.AgentNetworkRule, err error) {
	if p == nil || p.Access == "disabled" {
		return nil, nil
	}
	if len(p.Blocked) > 0 {
		return nil, resource.Bad("environment.network.blocked_domains", "it is not served; name what is allowed")
	}
	shown["access"] = p.Access
	switch p.Access {
	case "enabled":
		ctx, cancel := s.within(c)
		defer cancel()
		can, err := s.agentClient.GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
		if err != nil {
			return nil, err
		}
		if can.GetSandbox().GetNetwork() == "allowlist" { // with none, the operator lets nothing out, and asking would fail
			rules = append(rules, &sessionv1.AgentNetworkRule{Host: "*"})
		}
	case "restricted":
		for _, host := range p.Allowed {
			rules = append(rules, &sessionv1.AgentNetworkRule{Host: host})
		}
		shown["allowed_domains"] = append([]string{}, p.Allowed...)
	default:
		return nil, resource.Bad("environment.network.access", problem.Excerpt(p.Access)+" is none of enabled, disabled and restricted")
	}
	return rules, nil
}

// settle makes the environment that a session brings, unless there is one like it.
func (s *base) settle(c *request, x *surroundings) error {
	if x.spec == nil {
		return nil
	}
	id := named("openai-", x.spec)
	x.name = "environments/" + id
	ctx, cancel := s.within(c)
	defer cancel()
	if _, err := s.environments.GetEnvironment(ctx, &sessionv1.GetEnvironmentRequest{Name: x.name}); err == nil {
		return nil
	}
	_, err := s.environments.CreateEnvironment(ctx, &sessionv1.CreateEnvironmentRequest{EnvironmentId: id, Spec: x.spec, RequestId: c.Part(2)})
	if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS) {
		return nil
	}
	return err
}

// named returns an id that a spec has alone.
func named(prefix string, spec proto.Message) string {
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(spec) // it never fails
	sum := sha256.Sum256(b)
	return prefix + hex.EncodeToString(sum[:16])
}

// inline returns the agent of a spec that a session brings. Sessions with the same one share it.
func (s *base) inline(c *request, spec *sessionv1.AgentSpec, d *agentDoc) (*sessionv1.Agent, error) {
	d.Inline = true
	spec.MetadataJson = keep(spec.GetMetadataJson(), docName, d)
	ctx, cancel := s.within(c)
	defer cancel()
	for n, id := 1, named("inline-", spec); ; n++ {
		got, err := s.agentClient.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: "agents/" + id})
		if apierr.Code(err) == codes.NotFound {
			var made *sessionv1.CreateAgentResponse
			made, err = s.agentClient.CreateAgent(ctx, &sessionv1.CreateAgentRequest{AgentId: id, Spec: spec, RequestId: c.Part(3) + "." + strconv.Itoa(n)})
			if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS) {
				continue // another request has made it
			}
			return made.GetAgent(), err
		}
		if a := got.GetAgent(); err != nil || a.GetVersion() == 1 && a.ArchiveTime == nil {
			return a, err
		}
		id = named("inline-", spec) + "-" + strconv.Itoa(n) // an operator has changed or archived that one
	}
}

// withoutTools are the rules of a session without an environment.
func withoutTools() *commonv1.PermissionRules {
	return &commonv1.PermissionRules{Deny: append([]string{}, hostedTools...)}
}

// agentFor returns the agent of a new session, and what is kept with it.
func (s *base) agentFor(c *request, id *string, raw json.RawMessage, x surroundings) (agent func() (*sessionv1.Agent, error), d *agentDoc, instructions string, err error) {
	var p agentParams
	own := len(raw) > 0 && string(raw) != "null"
	if own && json.Unmarshal(raw, &p) != nil {
		return nil, nil, "", resource.Bad("agent", "it is not an agent")
	}
	spec, d := &sessionv1.AgentSpec{}, &agentDoc{}
	if id == nil {
		if p.Model == nil {
			return nil, nil, "", resource.Bad("agent.model", "it is required without an agent_id")
		}
	} else {
		a, err := s.agent(c, *id)
		if err != nil {
			return nil, nil, "", err
		}
		if !own || len(resource.Fields(raw)) == 0 {
			return func() (*sessionv1.Agent, error) { return a, nil }, docOf(a.GetMetadataJson(), a.GetName(), a.GetModel()), s.instructions(c, a), nil
		}
		if spec, err = s.spec(c, a); err != nil {
			return nil, nil, "", err
		}
		d = docOf(spec.GetMetadataJson(), a.GetName(), a.GetModel())
	}
	if err := s.apply(c, p, resource.Fields(raw), "agent.", spec, d); err != nil {
		return nil, nil, "", err
	}
	if x.none {
		spec.Tools = nil
	}
	return func() (*sessionv1.Agent, error) { return s.inline(c, spec, d) }, d, spec.GetPrompt(), nil
}
