package toolset

import (
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// OfServer reports whether a tool has the name of a tool of an MCP server.
func OfServer(tool string) bool { return strings.HasPrefix(tool, "mcp__") }

// desk are the built-in tools that ask MCP servers.
var desk = []string{"ListMcpResources", "ReadMcpResource", "GetMcpPrompt"}

// AsksServers reports whether a call of a tool needs the MCP servers.
func AsksServers(tool string) bool { return OfServer(tool) || slices.Contains(desk, tool) }

// Servers returns the MCP servers of the active turn. What a user changes of them holds from the
// next turn on. Concurrent calls use it.
func (s *Toolset) Servers(sc state.Scope) ([]*commonv1.McpServer, error) {
	loaded, err := s.loaded(sc)
	return loaded.Servers, err
}

// InSandbox reports whether an MCP server of the active turn runs in the session's sandbox.
func (s *Toolset) InSandbox(sc state.Scope) bool {
	loaded, err := s.loaded(sc)
	return err == nil && loaded.InSandbox()
}

// loaded reads the servers once in a turn.
func (s *Toolset) loaded(sc state.Scope) (mcp.Loaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == sc.Active.ID {
		return s.servers, nil
	}
	acting, _ := principal.From(sc)
	loaded, err := mcp.Load(sc, sc.Store, sc.Lease.Key, sc.Spec.MCPServers, store.Owner{Tenant: sc.Lease.Tenant, User: acting.User})
	if err != nil {
		return loaded, remote.Unavailable("read the MCP servers of the session: " + err.Error())
	}
	if sc.IsSubagent() {
		loaded = loaded.Of(sc.Spec.MCPServers)
	}
	s.turn, s.servers = sc.Active.ID, loaded
	return loaded, nil
}

// UnavailableError says that a server that the turn needs cannot be used.
type UnavailableError struct{ Server, Message string }

// Error says what to do.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("The MCP server %s cannot be used, and the turn needs it: %s", e.Server, e.Message)
}

// missing returns the first server that the turn needs and cannot use. One that is being connected
// is not missing yet.
func missing(servers []*commonv1.McpServerStatus, patient bool) error {
	for _, s := range servers {
		if s.Required && s.State != connected && (!patient || s.State != connecting) {
			return &UnavailableError{s.Name, sentence(s)}
		}
	}
	return nil
}

func waits(servers []*commonv1.McpServerStatus) bool {
	for _, s := range servers {
		if s.Required && s.State == connecting {
			return true
		}
	}
	return false
}

const (
	connected  = commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED
	connecting = commonv1.McpServerState_MCP_SERVER_STATE_CONNECTING
	needsLogin = commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION
)

// sentence returns what is wrong with a server.
func sentence(s *commonv1.McpServerStatus) string {
	text := strings.TrimSpace(s.Message)
	switch {
	case text == "" && s.State == connecting:
		text = "it does not answer"
	case text == "" && s.State == needsLogin:
		text = "you must log in to it first"
	case text == "":
		text = "it cannot be reached"
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
