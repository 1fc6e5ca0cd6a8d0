package refusal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// AgentNotFound refuses an agent that does not exist, by the field of the request that names it.
func AgentNotFound(name, field string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND,
		fmt.Sprintf("There is no agent %q. List the agents (GET /v1/agents) to see which there are.", name),
		apierr.Resource("fairlead.dev/Agent", name, "not found"), apierr.Metadata(map[string]string{"field": field}))
}

// AgentExists refuses a name that is taken.
func AgentExists(name, why string) error {
	return Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
		fmt.Sprintf("There is already an agent %s: %s. Choose another agent_id, or leave it out to get a new one.", name, why),
		apierr.Resource("fairlead.dev/Agent", name, "exists already"))
}

// AgentGone refuses a session whose agent has lost the revision that the session keeps to.
func AgentGone(name, revision string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_GONE,
		fmt.Sprintf("The session is pinned to revision %s of %s, which no longer exists. Create a new session.", revision, name))
}

// AgentMisconfigured refuses an agent of the configuration that names what tools does not have.
func AgentMisconfigured(name string, faults []string) error {
	var details []apierr.Option
	for _, fault := range faults {
		details = append(details, apierr.Precondition("AGENT", name, fault))
	}
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_AGENT_MISCONFIGURED,
		strings.Join(faults, "; ")+" Correct session.agents, or add the name to the tools service, and start the service again. Other agents work.", details...)
}

// AgentArchived refuses an archived agent.
func AgentArchived(name string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
		fmt.Sprintf("%s is archived: it takes no new sessions and no new versions. Use another agent, or bring it back (ArchiveAgent with undo).", name),
		apierr.Precondition("AGENT", name, "archived"))
}

// Agent is Store for a request about one agent.
func Agent(err error, name, requestID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return AgentNotFound(name, "name")
	case errors.Is(err, store.ErrExists):
		return AgentExists(name, "it was created before")
	case errors.Is(err, store.ErrArchived):
		return AgentArchived(name)
	case errors.Is(err, store.ErrTooMany):
		return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("A tenant has at most %d agents, archived ones included, and an agent at most %d versions. Change an agent that exists.", store.MaxAgents, store.MaxAgentVersions),
			apierr.Quota(name, "agents"))
	}
	return Store(err, Subject{RequestID: requestID})
}

// VersionConflict returns the error for a write that did not know the newest version, which it names.
func VersionConflict(ctx context.Context, s store.Agents, name string, expected int32, failed func(err error, name, requestID string) error) error {
	newest, err := s.GetAgent(ctx, principal.Tenant(ctx), name, 0)
	if err != nil {
		return failed(err, name, "")
	}
	return Of(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_VERSION_CONFLICT,
		fmt.Sprintf("The newest version of %s is %d, not %d. Read it, make the change again, and send it with expected_version %d.", name, newest.Version, expected, newest.Version),
		apierr.Metadata(map[string]string{"version": strconv.Itoa(int(newest.Version))}))
}

// Spec returns an error that names the field of each fault; nil without a fault.
func Spec(faults []agent.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	var texts []string
	var details []apierr.Option
	for _, f := range faults {
		texts = append(texts, "spec."+f.Field+": "+f.Text)
		details = append(details, apierr.Field("spec."+f.Field, f.Text))
	}
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC,
		"The spec breaks a rule, and nothing was changed. "+strings.Join(texts, "; ")+".", details...)
}
