package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func agentNotFound(name, field string) error {
	return fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND,
		fmt.Sprintf("There is no agent %q. List the agents (GET /v1/agents) to see which there are.", name),
		apierr.Resource("fairlead.dev/Agent", name, "not found"), apierr.Metadata(map[string]string{"field": field}))
}

func agentExists(name, why string) error {
	return fail(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
		fmt.Sprintf("There is already an agent %s: %s. Choose another agent_id, or leave it out to get a new one.", name, why),
		apierr.Resource("fairlead.dev/Agent", name, "exists already"))
}

func archivedAgent(name string) error {
	return fail(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_ARCHIVED,
		fmt.Sprintf("%s is archived: it takes no new sessions and no new versions. Use another agent, or bring it back (ArchiveAgent with undo).", name),
		apierr.Precondition("AGENT", name, "archived"))
}

// agentError is storeError for a request about one agent.
func agentError(err error, name, requestID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return agentNotFound(name, "name")
	case errors.Is(err, store.ErrExists):
		return agentExists(name, "it was created before")
	case errors.Is(err, store.ErrArchived):
		return archivedAgent(name)
	case errors.Is(err, store.ErrTooMany):
		return fail(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("A tenant has at most %d agents, archived ones included, and an agent at most %d versions. Change an agent that exists.", store.MaxAgents, store.MaxAgentVersions),
			apierr.Quota(name, "agents"))
	}
	return storeError(err, subject{requestID: requestID})
}

// versionConflict returns the error for a write that did not know the newest version, which it names.
func versionConflict(ctx context.Context, s store.Store, name string, expected int32, failed func(err error, name, requestID string) error) error {
	newest, err := s.GetAgent(ctx, principal.Tenant(ctx), name, 0)
	if err != nil {
		return failed(err, name, "")
	}
	return fail(codes.Aborted, sessionv1.ErrorReason_ERROR_REASON_VERSION_CONFLICT,
		fmt.Sprintf("The newest version of %s is %d, not %d. Read it, make the change again, and send it with expected_version %d.", name, newest.Version, expected, newest.Version),
		apierr.Metadata(map[string]string{"version": strconv.Itoa(int(newest.Version))}))
}

// versionError is agentError for a request about one version.
func (a *AgentServer) versionError(ctx context.Context, err error, name string, version int32) error {
	if !errors.Is(err, store.ErrNotFound) {
		return agentError(err, name, "")
	}
	if _, err := a.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: name}); err != nil {
		return err
	}
	return fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_VERSION_NOT_FOUND,
		fmt.Sprintf("%s has no version %d. List its versions to see which there are; an agent of the configuration file has none.", name, version),
		apierr.Resource("fairlead.dev/AgentVersion", fmt.Sprintf("%s/versions/%d", name, version), "not found"))
}
