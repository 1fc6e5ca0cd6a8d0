package agent

import (
	"fmt"
	"regexp"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxMounts is how many mounts an agent may name. A session may name as many
// (Session.mounts), and the sandbox takes both together.
const maxMounts = 32

var mountForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// checkMounts checks the names alone: the sandbox service knows which mounts there
// are, and for whom.
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

// Workspace asks for the workspace of a session of the agent's. Whoever makes or
// changes it asks for the same, so that nobody takes away what another one asked for.
// It has no environment, which leaves the workspace the one that it has: only who is
// about to run commands of a user's asks for that user's.
func (s Spec) Workspace(session *sessionv1.Session, call *commonv1.CallRef) *sandboxv1.EnsureWorkspaceRequest {
	return &sandboxv1.EnsureWorkspaceRequest{
		Call: call, Network: s.NetworkPolicy(), Limits: s.WorkspaceLimits(), Mounts: s.workspaceMounts(session.GetMounts()),
	}
}

// Environment is what a user has in the environment of commands. Without any variable
// it takes those away that there were before.
func Environment(variables []store.Variable) *sandboxv1.WorkspaceEnvironment {
	e := &sandboxv1.WorkspaceEnvironment{Variables: map[string]string{}}
	for _, v := range variables {
		e.Variables[v.Name] = v.Value
	}
	return e
}

// workspaceMounts are the agent's mounts and the session's, each once. Without any
// they take those away that another agent of the session had.
func (s Spec) workspaceMounts(session []string) *sandboxv1.WorkspaceMounts {
	return &sandboxv1.WorkspaceMounts{Names: slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Mounts, session))))}
}
