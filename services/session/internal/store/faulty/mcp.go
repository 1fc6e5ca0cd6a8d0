package faulty

import (
	"context"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of MCP servers.
const (
	SetMCPServer      Method = "SetMCPServer"
	DeleteMCPServer   Method = "DeleteMCPServer"
	UserMCPServers    Method = "UserMCPServers"
	SessionMCPServers Method = "SessionMCPServers"
)

// SetMCPServer implements store.MCPServers.
func (s mcpServers) SetMCPServer(ctx context.Context, o store.Owner, m *commonv1.McpServer, r store.Request) (store.MCPServer, error) {
	return do(ctx, s.injector, SetMCPServer, func() (store.MCPServer, error) { return s.inner.SetMCPServer(ctx, o, m, r) })
}

// DeleteMCPServer implements store.MCPServers.
func (s mcpServers) DeleteMCPServer(ctx context.Context, o store.Owner, name string, r store.Request) error {
	return just(ctx, s.injector, DeleteMCPServer, func() error { return s.inner.DeleteMCPServer(ctx, o, name, r) })
}

// UserMCPServers implements store.MCPServers.
func (s mcpServers) UserMCPServers(ctx context.Context, o store.Owner) ([]store.MCPServer, error) {
	return do(ctx, s.injector, UserMCPServers, func() ([]store.MCPServer, error) { return s.inner.UserMCPServers(ctx, o) })
}

// SessionMCPServers implements store.MCPServers.
func (s mcpServers) SessionMCPServers(ctx context.Context, k store.Key) ([]*commonv1.McpServer, error) {
	return do(ctx, s.injector, SessionMCPServers, func() ([]*commonv1.McpServer, error) { return s.inner.SessionMCPServers(ctx, k) })
}
