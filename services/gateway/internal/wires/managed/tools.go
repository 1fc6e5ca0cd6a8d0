package managed

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
)

// ourTools are our tools by their names on the wire. The web tools are not served.
var ourTools = map[string]string{"bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "glob": "Glob", "grep": "Grep"}

// toolsetNames are the tools of the toolset, as answers list them.
var toolsetNames = []string{"bash", "edit", "glob", "grep", "read", "web_fetch", "web_search", "write"}

// changing are the tools whose calls the policy auto asks about.
var changing = []string{"bash", "edit", "write"}

// toolName returns the name of a tool of ours on the wire.
func toolName(ours string) string {
	for name, tool := range ourTools {
		if tool == ours {
			return name
		}
	}
	return ours
}

const toolset = "agent_toolset_20260401"

// tool is an entry of an agent's tools.
type tool struct {
	Type    string       `json:"type"`
	Server  string       `json:"mcp_server_name,omitempty"`
	Default *toolConfig  `json:"default_config,omitempty"`
	Configs []toolConfig `json:"configs,omitempty"`

	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// toolConfig enables a tool, and names who decides on its calls.
type toolConfig struct {
	Type    string  `json:"type,omitempty"`
	Name    string  `json:"name,omitempty"`
	Enabled *bool   `json:"enabled"`
	Policy  *policy `json:"permission_policy"`
}

type policy struct {
	Type string `json:"type"`
}

// mcpServer is an entry of an agent's mcp_servers.
type mcpServer struct {
	Type string `json:"type"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

var customName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// resolve checks tools, and fills in what holds where a client says nothing.
func resolve(tools []tool, servers []mcpServer) ([]tool, error) {
	if len(tools) > 256 {
		return nil, resource.Bad("tools", "there are at most 256")
	}
	named := map[string]bool{}
	out := []tool{}
	for i, t := range tools {
		field := fmt.Sprintf("tools[%d]", i)
		var err error
		switch t.Type {
		case toolset:
			t, err = resolveSet(t, field)
		case "mcp_toolset":
			if !slices.ContainsFunc(servers, func(s mcpServer) bool { return s.Name == t.Server }) {
				return nil, resource.Bad(field+".mcp_server_name", problem.Excerpt(t.Server)+" is not among mcp_servers")
			}
			if t.Default, t.Configs, err = resolveConfigs(t, field, "always_ask"); err != nil {
				return nil, err
			}
			err = expressible(t, field)
		case "custom":
			if !customName.MatchString(t.Name) {
				return nil, resource.Bad(field+".name", problem.Excerpt(t.Name)+" is no name of a custom tool: it has 1 to 64 letters, digits, _ and -, and begins with a letter")
			}
			if len(t.InputSchema) == 0 {
				t.InputSchema = json.RawMessage(`{"type":"object"}`)
			}
			t.Default, t.Configs = nil, nil
		default:
			return nil, resource.Bad(field+".type", problem.Excerpt(t.Type)+" is not served; the types are "+toolset+", mcp_toolset and custom")
		}
		if err != nil {
			return nil, err
		}
		id := t.Type + "\x00" + t.Server + "\x00" + t.Name
		if named[id] {
			return nil, resource.Bad(field, "it is named twice")
		}
		named[id] = true
		out = append(out, t)
	}
	for i, s := range servers {
		if !named["mcp_toolset\x00"+s.Name+"\x00"] {
			return nil, resource.Bad(fmt.Sprintf("mcp_servers[%d].name", i), "no mcp_toolset of tools names "+problem.Excerpt(s.Name))
		}
	}
	return out, nil
}

// resolveConfigs returns the configurations of a toolset with what is not said filled in.
func resolveConfigs(t tool, field, dflt string) (*toolConfig, []toolConfig, error) {
	yes := true
	base := toolConfig{Enabled: &yes, Policy: &policy{dflt}}
	fill := func(c toolConfig, from toolConfig, field string) (toolConfig, error) {
		if c.Enabled == nil {
			c.Enabled = from.Enabled
		}
		if c.Policy == nil {
			c.Policy = from.Policy
		}
		if !slices.Contains([]string{"always_allow", "always_ask", "auto"}, c.Policy.Type) {
			return c, resource.Bad(field+".permission_policy.type", problem.Excerpt(c.Policy.Type)+" is none of always_allow, always_ask and auto")
		}
		return c, nil
	}
	if t.Default != nil {
		var err error
		if base, err = fill(*t.Default, base, field+".default_config"); err != nil {
			return nil, nil, err
		}
	}
	base.Name, base.Type = "", ""
	out := []toolConfig{}
	for i, c := range t.Configs {
		place := fmt.Sprintf("%s.configs[%d]", field, i)
		c, err := fill(c, base, place)
		if err != nil {
			return nil, nil, err
		}
		if c.Name == "" {
			return nil, nil, resource.Bad(place+".name", "it is missing")
		}
		out = append(out, c)
	}
	return &base, out, nil
}

// expressible refuses a tool that needs no answer of a server whose tools do: our rules to ask beat those to allow.
func expressible(t tool, field string) error {
	for i, c := range t.Configs {
		if *c.Enabled && *t.Default.Enabled && t.Default.Policy.Type != "always_allow" && c.Policy.Type == "always_allow" {
			return resource.Bad(fmt.Sprintf("%s.configs[%d].permission_policy", field, i), "always_allow beside a default that asks is not served; make always_allow the default and always_ask the exception")
		}
	}
	return nil
}

// resolveSet returns the toolset with every tool.
func resolveSet(t tool, field string) (tool, error) {
	base, configs, err := resolveConfigs(t, field, "always_allow")
	if err != nil {
		return t, err
	}
	all := []toolConfig{}
	for i, c := range configs {
		if !slices.Contains(toolsetNames, c.Name) {
			return t, resource.Bad(fmt.Sprintf("%s.configs[%d].name", field, i), problem.Excerpt(c.Name)+" is no tool of the toolset: "+strings.Join(toolsetNames, ", "))
		}
		if ourTools[c.Name] == "" && t.Configs[i].Enabled != nil && *c.Enabled {
			return t, resource.Bad(fmt.Sprintf("%s.configs[%d].enabled", field, i), c.Name+" is not served: Fairlead has no web tools; an MCP server can bring some")
		}
	}
	no := false
	for _, name := range toolsetNames {
		c := *base
		for _, own := range configs {
			if own.Name == name {
				c = own
			}
		}
		if ourTools[name] == "" {
			c.Enabled = &no
		}
		c.Name, c.Type = name, name
		all = append(all, c)
	}
	t.Default, t.Configs = base, all
	return t, nil
}

// grant adds what an agent may do to its spec. The profile allows everything, and the rules narrow it.
func grant(spec *sessionv1.AgentSpec, tools []tool, servers []mcpServer) {
	spec.Profile, spec.Tools, spec.McpServers = "full", nil, nil
	rules := &commonv1.PermissionRules{}
	for _, t := range tools {
		switch t.Type {
		case toolset:
			for _, c := range t.Configs {
				if !*c.Enabled {
					continue
				}
				spec.Tools = append(spec.Tools, ourTools[c.Name])
				if c.Policy.Type == "always_ask" || c.Policy.Type == "auto" && slices.Contains(changing, c.Name) {
					rules.Ask = append(rules.Ask, ourTools[c.Name])
				}
			}
		case "mcp_toolset":
			i := slices.IndexFunc(servers, func(s mcpServer) bool { return s.Name == t.Server })
			if server := serverOf(servers[i], t, rules); server != nil {
				spec.McpServers = append(spec.McpServers, server)
			}
		}
	}
	if len(rules.Ask) > 0 || len(rules.Allow) > 0 {
		spec.Permissions = rules
	}
}

// serverOf returns an MCP server with the tools that are enabled, nil without any, and adds the rules about them.
func serverOf(s mcpServer, t tool, rules *commonv1.PermissionRules) *commonv1.McpServer {
	out := &commonv1.McpServer{Name: s.Name, Transport: &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: s.URL}}}
	ask := func(c toolConfig) bool { return c.Policy.Type != "always_allow" }
	if *t.Default.Enabled && ask(*t.Default) {
		rules.Ask = append(rules.Ask, "mcp__"+s.Name+"__*")
	}
	for _, c := range t.Configs {
		switch {
		case !*c.Enabled:
			out.DisabledTools = append(out.DisabledTools, c.Name)
			continue
		case !*t.Default.Enabled:
			out.Tools = append(out.Tools, c.Name)
		}
		if ask(c) {
			rules.Ask = append(rules.Ask, "mcp__"+s.Name+"__"+c.Name)
		}
	}
	if !*t.Default.Enabled && len(out.Tools) == 0 {
		return nil
	}
	return out
}

// clientTools returns the tools that the client runs.
func clientTools(tools []tool) (out []*sessionv1.ClientTool, names []string) {
	for _, t := range tools {
		if t.Type == "custom" {
			out = append(out, &sessionv1.ClientTool{Name: t.Name, Description: t.Description, InputSchemaJson: string(t.InputSchema)})
			names = append(names, t.Name)
		}
	}
	return out, names
}
