package openaiagents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// hostedTools are the tools that an environment brings with it: it has no list of them on the wire.
var hostedTools = []string{"Bash", "Edit", "Glob", "Grep", "Read", "Write"}

// tool is an entry of an agent's tools, as a client sends it and as answers have it.
type tool struct {
	Type string `json:"type"`

	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Async       bool            `json:"async,omitempty"`
	Defer       *bool           `json:"defer_loading,omitempty"`

	Label      string          `json:"server_label,omitempty"`
	Transport  *transport      `json:"transport,omitempty"`
	Allowed    []string        `json:"allowed_tools,omitempty"`
	Origin     *string         `json:"connection_origin,omitempty"`
	Credential *string         `json:"credential_id,omitempty"`
	Required   *bool           `json:"required,omitempty"`
	Request    json.RawMessage `json:"request_metadata,omitempty"`
}

// transport is how an MCP server is reached.
type transport struct {
	Type          string            `json:"type"`
	URL           string            `json:"server_url,omitempty"`
	Authorization *string           `json:"authorization,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Command       string            `json:"command,omitempty"`
	Args          []string          `json:"args,omitempty"`
	Folder        string            `json:"cwd,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	EnvVars       []string          `json:"env_vars,omitempty"`
}

var (
	functionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	serverLabel  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
)

// mostTools is how many tools an agent has at most.
const mostTools = 256

// resolve checks tools, and fills in what holds where a client says nothing.
func resolve(tools []tool, field string) ([]tool, error) {
	if err := wire.TooMany(field, len(tools), mostTools); err != nil {
		return nil, err
	}
	out, named := []tool{}, map[string]bool{}
	for i, t := range tools {
		place := fmt.Sprintf("%s[%d]", field, i)
		var err error
		switch t.Type {
		case "function":
			t, err = t.function(place)
		case "mcp":
			t, err = t.server(place)
		default:
			err = resource.Bad(place+".type", problem.Excerpt(t.Type)+" is not served; the types are function and mcp, and an environment brings the tools for commands and files")
		}
		if err != nil {
			return nil, err
		}
		id := t.Type + "\x00" + t.Name + t.Label
		if named[id] {
			return nil, resource.Bad(place, "it is named twice")
		}
		named[id] = true
		out = append(out, t)
	}
	return out, nil
}

func (t tool) function(place string) (tool, error) {
	switch {
	case !functionName.MatchString(t.Name):
		return t, resource.Bad(place+".name", problem.Excerpt(t.Name)+" is no name of a function: it has 1 to 64 letters, digits, _ and -, and begins with a letter")
	case slices.Contains(hostedTools, t.Name):
		return t, resource.Bad(place+".name", t.Name+" is a tool of Fairlead; choose another name")
	case t.Async:
		return t, resource.Bad(place+".async", "it is not served: a turn waits for the results of its calls")
	}
	no := false
	if t.Defer == nil {
		t.Defer = &no
	}
	if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
		t.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	return tool{Type: t.Type, Name: t.Name, Description: t.Description, Parameters: t.Parameters, Defer: t.Defer}, nil
}

func (t tool) server(place string) (tool, error) {
	x := t.Transport
	switch {
	case !serverLabel.MatchString(t.Label):
		return t, resource.Bad(place+".server_label", problem.Excerpt(t.Label)+" is no name of a server: it has 1 to 32 letters, digits, _ and -, and begins with a letter or a digit")
	case t.Credential != nil:
		return t, resource.Bad(place+".credential_id", "vaults are not served; users log in to MCP servers, and operators configure credentials")
	case len(t.Request) > 0 && string(t.Request) != "null" && string(t.Request) != "{}":
		return t, resource.Bad(place+".request_metadata", "it is not served")
	case x == nil || x.Type != "http" && x.Type != "stdio":
		return t, resource.Bad(place+".transport.type", "it is neither http nor stdio")
	case x.Type == "http" && x.URL == "":
		return t, resource.Bad(place+".transport.server_url", "it is required")
	case x.Type == "http" && (x.Authorization != nil || len(x.Headers) > 0):
		return t, resource.Bad(place+".transport.authorization", "secrets in agents are not served; users log in to MCP servers, and operators configure credentials")
	case x.Type == "stdio" && x.Command == "":
		return t, resource.Bad(place+".transport.command", "it is required")
	case x.Type == "stdio" && x.Folder != "/workspace" && x.Folder != "":
		return t, resource.Bad(place+".transport.cwd", problem.Excerpt(x.Folder)+" is not served; a server runs in /workspace")
	case x.Type == "stdio" && len(x.Env)+len(x.EnvVars) > 0:
		return t, resource.Bad(place+".transport.env", "it is not served; the environment of the session has the variables")
	}
	origin, no := "service", false
	if x.Type == "stdio" {
		origin = "environment"
	}
	if t.Origin != nil && *t.Origin != origin {
		return t, resource.Bad(place+".connection_origin", problem.Excerpt(*t.Origin)+" is not served for this transport, only "+origin)
	}
	if t.Required == nil {
		t.Required = &no
	}
	return tool{Type: t.Type, Label: t.Label, Transport: x, Allowed: t.Allowed, Origin: &origin, Required: t.Required}, nil
}

// grant sets what an agent may do in its spec: all that it has.
func grant(spec *sessionv1.AgentSpec, tools []tool) {
	spec.Profile, spec.Tools, spec.McpServers = "full", slices.Clone(hostedTools), nil
	for _, t := range tools {
		if t.Type != "mcp" {
			continue
		}
		server := &commonv1.McpServer{Name: t.Label, Tools: t.Allowed, Required: *t.Required}
		if t.Transport.Type == "http" {
			server.Transport = &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: t.Transport.URL}}
		} else {
			server.Transport = &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: t.Transport.Command, Args: t.Transport.Args}}
		}
		spec.McpServers = append(spec.McpServers, server)
	}
}

// clientTools returns the tools that the client runs.
func clientTools(tools []tool) (out []*sessionv1.ClientTool, names []string) {
	for _, t := range tools {
		if t.Type == "function" {
			out = append(out, &sessionv1.ClientTool{Name: t.Name, Description: t.Description, InputSchemaJson: string(t.Parameters)})
			names = append(names, t.Name)
		}
	}
	return out, names
}
