package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// readSkill returns the instructions of a skill of the session.
func (c *caller) readSkill(sc state.Scope, arguments string) (*toolsv1.CallResult, error) {
	answer := func(outcome toolsv1.CallOutcome, text string) (*toolsv1.CallResult, error) {
		return &toolsv1.CallResult{Outcome: outcome, Content: []*commonv1.Content{state.Text(text)}}, nil
	}
	x, name := namedSkill(sc, arguments)
	if x == nil {
		return answer(toolsv1.CallOutcome_CALL_OUTCOME_ERROR, fmt.Sprintf("There is no skill %q. %s", name, skillNames(sc.Spec)))
	}
	if c.calls.Skills == nil {
		return nil, remote.Refused("this server has no skills")
	}
	text, err := c.calls.Skills.Instructions(sc, sc.Lease.Tenant, *x)
	switch {
	case errors.Is(err, skill.ErrGone):
		if err := appendEvent(sc, state.SkillDeleted(*x)); err != nil {
			return nil, err
		}
		return answer(toolsv1.CallOutcome_CALL_OUTCOME_ERROR, "The skill was deleted since the session began. Go on without it.")
	case err != nil:
		return nil, remote.Unavailable(err.Error()) // the call is made again
	}
	return answer(toolsv1.CallOutcome_CALL_OUTCOME_OK, fmt.Sprintf(
		"The skill %s is in the folder %s. Its files can be read and run there, and relative paths below are relative to it.\n\n%s", x.Name, x.Path(), text))
}

// namedSkill returns the session's skill that a call names, or nil.
func namedSkill(sc state.Scope, arguments string) (*agent.Skill, string) {
	var a struct {
		Skill string `json:"skill"`
	}
	_ = json.Unmarshal([]byte(arguments), &a) // the tools service has checked the arguments
	if x, ok := sc.Spec.Skill(a.Skill); ok {
		return &x, a.Skill
	}
	return nil, a.Skill
}

func skillNames(s agent.Spec) string {
	if len(s.PinnedSkills) == 0 {
		return "The session has none."
	}
	var names []string
	for _, x := range s.PinnedSkills {
		names = append(names, x.Name)
	}
	return "The session has " + strings.Join(names, ", ") + "."
}

// skillEvents returns the event of a skill whose instructions were read.
func skillEvents(sc state.Scope, u *sessionv1.ToolUse, r *sessionv1.ToolResult) []*sessionv1.Event {
	if u.Tool != agent.SkillTool || r.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		return nil
	}
	x, _ := namedSkill(sc, u.ArgumentsJson)
	if x == nil {
		return nil // a person changed the arguments
	}
	used := &sessionv1.SkillUsed{CallId: u.CallId, Skill: x.Name, Version: x.Version}
	if x.User != "" {
		used.User = "users/" + x.User
	}
	return []*sessionv1.Event{sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_SkillUsed{SkillUsed: used}})}
}
