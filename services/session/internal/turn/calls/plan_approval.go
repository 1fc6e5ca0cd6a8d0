package calls

import (
	"encoding/json"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// plan returns what a person said to the agent's plan, or the plan if a person has yet to be asked.
func (c *caller) plan(u *sessionv1.ToolUse, arguments string) (_ *toolsv1.CallResult, plan string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.sc.Active.PlanAnswer(u); ok {
		return told(a, c.sc.Mode()), ""
	}
	var call struct {
		Plan string `json:"plan"`
	}
	switch {
	case c.sc.Active.IsCall() || c.sc.IsSubagent():
		return planFault("Only the turn of an agent that a person talks to has a plan. Answer with what you have found."), ""
	case c.sc.Mode() != commonv1.PermissionMode_PERMISSION_MODE_PLAN:
		return planFault("The turn is not in the mode plan: no plan needs an approval. Go on with the work."), ""
	case json.Unmarshal([]byte(arguments), &call) != nil || strings.TrimSpace(call.Plan) == "":
		return planFault("The plan is empty. Write what you are going to do."), ""
	}
	return nil, call.Plan
}

func planFault(text string) *toolsv1.CallResult {
	return &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_ERROR, Content: []*commonv1.Content{state.Text(text)}}
}

// told returns the model's text for an answer to its plan.
func told(a state.Answer, mode commonv1.PermissionMode) *toolsv1.CallResult {
	r := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK}
	text := "The user approved the plan. The mode plan is over: carry the plan out now."
	switch {
	case !a.Approved:
		r.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_REFUSED
		text = "The user did not approve the plan, and the mode plan still holds: nothing may be changed. Change the plan and show it again."
	case mode == commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS:
		text += " Changes of files in the workspace are not asked about."
	}
	if a.Comment != "" {
		text += fmt.Sprintf(" The user says: %s", a.Comment)
	}
	r.Content = []*commonv1.Content{state.Text(text)}
	return r
}

// askPlan records that a person must approve the agent's plan.
func (c *caller) askPlan(u *sessionv1.ToolUse, plan string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var write store.Write
	state.AskPlan(c.sc.Session, &write, u, plan)
	write.Turns = []*store.TurnRow{c.sc.Active.Row()}
	return c.sc.Append(write)
}
