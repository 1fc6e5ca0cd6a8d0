package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxLoaded is the most servers that one request may name.
const maxLoaded = 64

// Store has the servers of sessions and users, and the variables of users.
type Store interface {
	UserMCPServers(ctx context.Context, o store.Owner) ([]store.MCPServer, error)
	SessionMCPServers(ctx context.Context, k store.Key) ([]*commonv1.McpServer, error)
	SessionOwner(ctx context.Context, k store.Key) (string, error)
	Variables(ctx context.Context, o store.Owner) ([]store.Variable, error)
}

// Loaded are the servers of a session for its acting user.
type Loaded struct {
	// Servers can be passed to the tools service. Their values may be secrets.
	Servers []*commonv1.McpServer
	// Broken cannot be used: their settings are not complete.
	Broken []*commonv1.McpServerStatus
}

// Load reads the servers of a session with this agent. Those that the session brings get the variables of its owner
// alone: an operator's must not go to the servers of the users whose sessions the operator looks at.
func Load(ctx context.Context, from Store, k store.Key, agent Servers, acting store.Owner) (Loaded, error) {
	own, err := from.SessionMCPServers(ctx, k)
	if err != nil {
		return Loaded{}, err
	}
	rows, err := from.UserMCPServers(ctx, acting)
	if err != nil {
		return Loaded{}, err
	}
	var user []*commonv1.McpServer
	for _, row := range rows {
		user = append(user, row.McpServer)
	}
	all := Merge(own, agent.Protos(), user)
	if len(all) == 0 {
		return Loaded{}, nil
	}
	owner := acting.User
	if len(own) > 0 {
		if owner, err = from.SessionOwner(ctx, k); err != nil {
			return Loaded{}, err
		}
	}
	set, err := from.Variables(ctx, acting)
	if err != nil {
		return Loaded{}, err
	}
	variables := map[string]string{}
	for _, v := range set {
		variables[v.Name] = v.Value
	}
	var out Loaded
	for _, s := range all {
		foreign := owner != acting.User && slices.ContainsFunc(own, func(o *commonv1.McpServer) bool { return o.GetName() == s.GetName() })
		values := variables
		if foreign {
			values = nil
		}
		resolved, err := Resolve(s, values)
		var missing *MissingError
		switch {
		case errors.As(err, &missing) && foreign:
			out.broken(s, fmt.Sprintf("The session's user %s has set the server up with the variable %s, and your variables do not go there. It works in turns of that user.",
				owner, strings.Join(missing.Names, ", ")))
		case errors.As(err, &missing):
			out.broken(s, fmt.Sprintf("The user %s has no variable %s, which the server needs. Set it with `fairlead variables set NAME`.", acting.User, strings.Join(missing.Names, ", ")))
		case err != nil:
			return Loaded{}, err
		case len(out.Servers) == maxLoaded:
			out.broken(s, fmt.Sprintf("The session has more than %d MCP servers. Remove some.", maxLoaded))
		default:
			out.Servers = append(out.Servers, resolved)
		}
	}
	return out, nil
}

func (l *Loaded) broken(s *commonv1.McpServer, why string) {
	l.Broken = append(l.Broken, &commonv1.McpServerStatus{
		Name: s.GetName(), State: commonv1.McpServerState_MCP_SERVER_STATE_FAILED, Message: why, Required: s.GetRequired(),
	})
}

// InSandbox reports whether a server runs in the session's sandbox.
func (l Loaded) InSandbox() bool {
	for _, s := range l.Servers {
		if s.GetStdio() != nil {
			return true
		}
	}
	return false
}

// Of returns the servers that an agent brings. A subagent gets no others: the list of its tools could not
// leave out those of its user.
func (l Loaded) Of(agent Servers) Loaded {
	var out Loaded
	for _, s := range l.Servers {
		if _, ok := agent[s.GetName()]; ok {
			out.Servers = append(out.Servers, s)
		}
	}
	for _, s := range l.Broken {
		if _, ok := agent[s.GetName()]; ok {
			out.Broken = append(out.Broken, s)
		}
	}
	return out
}
