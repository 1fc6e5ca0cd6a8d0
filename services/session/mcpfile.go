package session

import (
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// MCPFile reads MCP servers in the form of .mcp.json. References to variables stay as they are,
// except at the beginning of a URL, where lookup replaces them.
func MCPFile(text []byte, lookup func(name string) (string, bool)) ([]*commonv1.McpServer, error) {
	return mcp.ParseFile(text, lookup)
}
