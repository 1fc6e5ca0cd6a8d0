package server

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// checkPatience bounds the wait for the tools service, which knows the names of tools and profiles.
const checkPatience = 5 * time.Second

// checkPermissions refuses rules of a session that the tools service does not understand: its calls would all fail.
func (c *Config) checkPermissions(ctx context.Context, field string, rules *commonv1.PermissionRules) error {
	if proto.Size(rules) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	faults, err := c.Tools.CheckAgents(asking, &toolsv1.CheckAgentsRequest{Agents: []*toolsv1.AgentNeeds{{Permissions: rules}}})
	if err != nil {
		if left := ctx.Err(); left != nil {
			return left
		}
		c.Log.WarnContext(ctx, "cannot ask the tools service about the rules of a session", "error", err)
		return refusal.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The session's permissions cannot be checked, because the tools service does not answer. Nothing was created; try again, with the same request id.", apierr.RetryAfter(time.Second))
	}
	if len(faults) == 0 {
		return nil
	}
	var texts []string
	var details []apierr.Option
	for _, f := range faults {
		at := field + strings.TrimPrefix(f.Field, "permissions")
		why := strings.TrimPrefix(f.Message, `agent "": `+f.Field+": ")
		texts, details = append(texts, at+": "+why), append(details, apierr.Field(at, why))
	}
	return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_PERMISSIONS,
		"A permission rule of the session is not valid, and nothing was created. "+strings.Join(texts, "; ")+".", details...)
}
