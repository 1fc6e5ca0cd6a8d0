package agent

import (
	"fmt"
	"regexp"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// maxMounts bounds the mounts of an agent. A session may name as many
// (Session.mounts), and the sandbox accepts both together.
const maxMounts = 32

var mountForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// checkMounts checks only the names: the sandbox service knows which mounts exist,
// and for whom.
func checkMounts(names []string) error {
	if len(names) > maxMounts {
		return fmt.Errorf("%d mounts are more than %d", len(names), maxMounts)
	}
	for i, name := range names {
		switch {
		case !mountForm.MatchString(name):
			return fmt.Errorf("mount %q: a name is 1 to 63 lower-case letters, digits and '-', and begins with no '-'", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("mount %q is named twice", name)
		}
	}
	return nil
}

// Workspace returns the request for the workspace of a session of the agent, whose turn has a runtime. Every
// caller that makes or changes the workspace requests the same settings, so that no
// caller removes another one's. The request has no environment, which leaves the
// workspace's environment unchanged: only a caller that is about to run a user's
// commands sets it.
func (s Spec) Workspace(session *sessionv1.Session, call *commonv1.CallRef, runtime string) *sandboxv1.EnsureWorkspaceRequest {
	return &sandboxv1.EnsureWorkspaceRequest{
		Call: call, Network: s.NetworkPolicy(), Limits: s.WorkspaceLimits(), Mounts: s.workspaceMounts(session.GetMounts()),
		Trees: s.workspaceTrees(runtime),
	}
}

// workspaceMounts returns the agent's mounts and the session's, without
// duplicates. An empty list removes the mounts of the session's earlier agent.
func (s Spec) workspaceMounts(session []string) *sandboxv1.WorkspaceMounts {
	return &sandboxv1.WorkspaceMounts{Names: slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Mounts, session))))}
}
