package state

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// PlanTool shows a person the agent's plan. Turns in the mode plan have it, whatever the tools of the agent are.
const PlanTool = "ExitPlanMode"

const planning = commonv1.PermissionMode_PERMISSION_MODE_PLAN

// Plans reports whether the active turn has the tool that shows the plan. It keeps it after the plan is approved, so
// that the beginning of each request to the model stays the same. A subagent has no plan of its own.
func Plans(s *Session) bool {
	return s.Active != nil && !s.Active.IsCall() && !s.IsSubagent() && (s.options().GetPermissionMode() == planning || s.Mode() == planning)
}

// AllowedTools returns the tools that the active turn may use, but for those of MCP servers.
func AllowedTools(s *Session) []string {
	if !Plans(s) || slices.Contains(s.Spec.Tools, PlanTool) {
		return s.Spec.Tools
	}
	return append(slices.Clone(s.Spec.Tools), PlanTool)
}

// AskPlan adds the question whether the agent may carry out its plan to a write.
func AskPlan(s *Session, write *store.Write, u *sessionv1.ToolUse, plan string) {
	s.Ask(write, &sessionv1.ApprovalRequested{
		CallId: u.CallId, Tool: u.Tool, ArgumentsJson: u.ArgumentsJson, Digest: planDigest(u), Rule: "the mode plan",
		Kind: sessionv1.ApprovalKind_APPROVAL_KIND_PLAN, Message: plan,
	})
	q := s.Active.Run.Asked[u.CallId]
	q.Plan = true
	s.Active.Run.Asked[u.CallId] = q
}

// PlanAnswer returns what a person said to the plan of a call. The answer whether the call itself may be made has
// another digest.
func (t *Turn) PlanAnswer(u *sessionv1.ToolUse) (Answer, bool) {
	a, ok := t.Run.Approvals[u.CallId]
	return a, ok && a.Digest == planDigest(u)
}

func planDigest(u *sessionv1.ToolUse) string {
	sum := sha256.Sum256([]byte("plan\x00" + u.CallId + "\x00" + u.ArgumentsJson))
	return hex.EncodeToString(sum[:])
}
