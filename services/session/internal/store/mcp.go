package store

import (
	"context"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// Limits of one user's MCP servers.
const (
	MaxMCPServers     = 32
	MaxMCPServerBytes = 256 << 10 // together
)

// MCPServer is an MCP server of a user. Its values may be secrets, which must not get into
// answers, logs, events or spans.
type MCPServer struct {
	*commonv1.McpServer
	Time time.Time // when it was set, by the store; zero: it no longer exists
}

// Additions are what a session brings besides its agent.
type Additions struct {
	Mounts     []*commonv1.Mount // requested besides its agent's
	MCPServers []*commonv1.McpServer
	Skills     []string // its agent's as well, with the versions that it keeps to
	// Permissions narrow its agent's; nil: they do not.
	Permissions *commonv1.PermissionRules
}

// MCPServers stores the MCP servers of users and sessions.
type MCPServers interface {
	// SetMCPServer sets a server of a user; ErrTooMany, ErrRequestIDReused. A repeated
	// request returns the server as it is now, if it still exists.
	SetMCPServer(ctx context.Context, o Owner, s *commonv1.McpServer, r Request) (MCPServer, error)
	// DeleteMCPServer deletes a server of a user; ErrNotFound, ErrRequestIDReused.
	DeleteMCPServer(ctx context.Context, o Owner, name string, r Request) error
	// UserMCPServers reads a user's servers, by name.
	UserMCPServers(ctx context.Context, o Owner) ([]MCPServer, error)
	// SessionMCPServers reads the servers that a session brings. A session that does not
	// exist has none.
	SessionMCPServers(ctx context.Context, k Key) ([]*commonv1.McpServer, error)
}
