package agent

import (
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

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
