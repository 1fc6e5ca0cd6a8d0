package refusal

import (
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// InvalidMCP refuses the settings of an MCP server.
func InvalidMCP(field, why string) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_MCP_SERVER,
		"The MCP server cannot be set up so: "+why+".", apierr.Field(field, why))
}

// MCPNameTaken refuses an MCP server that has the name of an operator's.
func MCPNameTaken(field, message string) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_MCP_NAME_TAKEN, message, apierr.Field(field, "the operator has a server of this name"))
}

// MCPNotFound refuses an MCP server that does not exist.
func MCPNotFound(name string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND,
		"There is no MCP server "+name+". List your servers to see which there are.", apierr.Resource("fairlead.dev/UserMcpServer", name, "not found"))
}

// Permissions refuses the rules of a session; nil: they have no faults.
func Permissions(faults []agent.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	var texts []string
	var details []apierr.Option
	for _, f := range faults {
		texts, details = append(texts, f.Field+": "+f.Text), append(details, apierr.Field(f.Field, f.Text))
	}
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_PERMISSIONS,
		"A permission rule of the session is not valid, and nothing was created. "+strings.Join(texts, "; ")+".", details...)
}
