package main

import (
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/tools"
)

// newSession describes the session that a command creates.
type newSession struct {
	Agent       string            `help:"The agent of the new session, such as coder or assistant."`
	Title       string            `help:"The title of the new session."`
	Label       map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A label of the new session; may be repeated."`
	Key         string            `help:"A key of your own for the new session."`
	Environment string            `help:"The environment of the new session."`
	Replace     bool              `help:"Archive the session that has the key now."`
	Mount       []string          `placeholder:"NAME[:ro|:rw]" sep:"none" help:"A mount of the sandbox's operator for the new session; may be repeated."`
	Permissions string            `placeholder:"FILE" help:"A YAML file with rules for the new session, which narrow the agent's profile."`
	MCPConfig   []string          `name:"mcp-config" placeholder:"FILE" help:"A file such as .mcp.json with MCP servers for the new session; may be repeated."`
}

// onlyFor refuses settings of a new session beside an existing one.
func (n newSession) onlyFor(session string) error {
	switch {
	case session == "":
		return nil
	case n.Agent != "":
		return usage("--agent is for new sessions; the session %s has its agent already", session)
	case n.Permissions != "":
		return usage("--permissions is for new sessions; the session %s keeps its rules", session)
	case len(n.Mount) > 0:
		return usage("--mount is for new sessions; the session %s keeps its mounts", session)
	case len(n.MCPConfig) > 0:
		return usage("--mcp-config is for new sessions; the session %s has its MCP servers already", session)
	case n.Title != "" || n.Environment != "" || len(n.Label) > 0 || n.Key != "" || n.Replace:
		return usage("--title, --label, --key, --environment and --replace are for new sessions; change the session %s with `fairlead sessions update`", session)
	}
	return nil
}

func (n newSession) request(s stdio) (*sessionv1.CreateSessionRequest, error) {
	r := &sessionv1.CreateSessionRequest{
		Session: &sessionv1.Session{Agent: n.Agent, Title: n.Title, Labels: n.Label, Key: n.Key, Environment: n.Environment}, Replace: n.Replace,
	}
	if n.Permissions != "" {
		rules, err := tools.ProfileFile(n.Permissions)
		if err != nil {
			return nil, err
		}
		r.Session.Permissions = rules
	}
	for _, m := range n.Mount {
		name, mode, bounded := strings.Cut(m, ":")
		if bounded && mode != "ro" && mode != "rw" {
			return nil, usage("--mount %s: name a mount of the sandbox's operator, and optionally :ro or :rw, such as books:ro; other folders cannot be mounted", m)
		}
		r.Session.Mounts = append(r.Session.Mounts, &commonv1.Mount{Name: name, Mode: mode})
	}
	for _, name := range n.MCPConfig {
		servers, err := mcpFile(s, name)
		if err != nil {
			return nil, err
		}
		r.Session.McpServers = append(r.Session.McpServers, servers...)
	}
	return r, nil
}

// turnOptions change what the agent does in the turns of a command.
type turnOptions struct {
	Model          string            `placeholder:"PROVIDER:MODEL" help:"The model, within what the agent allows."`
	ThinkingTokens *int64            `placeholder:"N" help:"The most tokens that the model may think in a step; 0: none."`
	Mode           string            `enum:",default,accept-edits,plan,bypass" default:"" placeholder:"MODE" help:"The permission mode: default, accept-edits, plan or bypass."`
	Context        string            `placeholder:"TEXT" help:"Text that follows the agent's prompt."`
	Param          map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"The value of a parameter of the agent's prompt; may be repeated."`
}

// options returns nil if nothing is set.
func (o turnOptions) options() *sessionv1.TurnOptions {
	if o.Model == "" && o.Mode == "" && o.ThinkingTokens == nil && o.Context == "" && len(o.Param) == 0 {
		return nil
	}
	return &sessionv1.TurnOptions{Model: o.Model, ThinkingTokens: o.ThinkingTokens, Context: o.Context, Parameters: o.Param, PermissionMode: modeOf(o.Mode)}
}

// modeOf reads the name of a permission mode; none is UNSPECIFIED.
func modeOf(name string) commonv1.PermissionMode {
	word := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return commonv1.PermissionMode(commonv1.PermissionMode_value["PERMISSION_MODE_"+word])
}
