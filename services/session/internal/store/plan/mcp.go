package plan

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CheckMCPServers refuses more servers than a user may have: the existing ones and another one.
func CheckMCPServers(all []store.MCPServer, another *commonv1.McpServer) error {
	count, bytes := 1, proto.Size(another)
	for _, s := range all {
		if s.GetName() != another.GetName() {
			count++
			bytes += proto.Size(s.McpServer)
		}
	}
	if count > store.MaxMCPServers || bytes > store.MaxMCPServerBytes {
		return store.ErrTooMany
	}
	return nil
}

// MCPServerOf finds a server among a user's. A server that no longer exists has no time.
func MCPServerOf(all []store.MCPServer, name string) store.MCPServer {
	for _, s := range all {
		if s.GetName() == name {
			return s
		}
	}
	return store.MCPServer{McpServer: &commonv1.McpServer{Name: name}}
}

// SessionMCP is the row of the MCP servers that a session brings.
type SessionMCP struct {
	store.Key
	Servers []byte // of a marshaled AgentSpec
}

// sessionMCP returns the row of a new session; nil if it brings no servers.
func sessionMCP(k store.Key, servers []*commonv1.McpServer) (*SessionMCP, error) {
	if len(servers) == 0 {
		return nil, nil //nolint:nilnil // it brings none
	}
	body, err := MarshalMCP(servers)
	if err != nil {
		return nil, fmt.Errorf("marshal the MCP servers of session %s: %w", k.Session, err)
	}
	return &SessionMCP{k, body}, nil
}

// MarshalMCP returns the stored form of servers.
func MarshalMCP(servers []*commonv1.McpServer) ([]byte, error) {
	return proto.Marshal(&sessionv1.AgentSpec{McpServers: servers})
}

// UnmarshalMCP parses the output of MarshalMCP.
func UnmarshalMCP(body []byte) ([]*commonv1.McpServer, error) {
	spec := &sessionv1.AgentSpec{}
	if err := proto.Unmarshal(body, spec); err != nil {
		return nil, fmt.Errorf("read MCP servers: %w", err)
	}
	return spec.McpServers, nil
}
