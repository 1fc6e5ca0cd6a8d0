package refusal

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Final reports whether a repeated request would be refused again, and why.
func Final(err error) (message string, final bool) {
	switch apierr.Code(err) { //nolint:exhaustive // the rest may go better next time
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.ResourceExhausted, codes.PermissionDenied, codes.OutOfRange:
		return strings.TrimSpace(apierr.Message(err)), true
	}
	return "", false
}

// Conflict reports whether a request did not know the newest version of what it changes.
func Conflict(err error) bool { return apierr.Code(err) == codes.Aborted }

// ToolsUnavailable refuses what only the tools service can check, while it does not answer. The message says what was left
// undone.
func ToolsUnavailable(message string) error {
	return Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE, message, apierr.RetryAfter(time.Second))
}

// AgentReadOnly refuses to change an agent of the configuration.
func AgentReadOnly(name string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_READ_ONLY,
		fmt.Sprintf("%s is an agent of the configuration file, which the API does not change. Create an agent with another agent_id, or change the file.", name),
		apierr.Precondition("AGENT", name, "read-only"))
}

// MayNotMake refuses to make an agent for a user without the role or the scope.
func MayNotMake(user, scope string) error {
	return Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("users/%s may not make agents: this needs the role operator and the scope %s, when the turn begins and now. Turns of schedules and triggers have neither.", user, scope))
}

// TooManyRules refuses to make an agent in a session with more sets of rules than an agent can have.
func TooManyRules(turn string, sets int) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("This session may make no agents: %d sets of permission rules narrow what it may do, and an agent has only one. An operator can make the agent with `fairlead agents create`.", sets),
		apierr.Precondition("SESSION", turn, "has more rules than an agent"))
}

// OtherSettings refuses to change an agent that has what its maker cannot give.
func OtherSettings(name string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		fmt.Sprintf("%s has other settings than this agent can give, such as its profile, environment or limits. An operator can change it with `fairlead agents update`.", name),
		apierr.Precondition("AGENT", name, "has other settings"))
}

// Making refuses what an agent may not give to one that it makes.
func Making(field, what string) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC, "The agent cannot be made: "+what+".", apierr.Field(field, what))
}
