package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// exitPlanModeSpec has no runner: the session asks a person about the plan. The session offers the tool in the
// permission mode plan alone.
var exitPlanModeSpec = tool.Spec{
	Name: "ExitPlanMode",
	Description: `Shows the user your plan and waits until they approve it. This turn is in the mode plan: you may read and search, but nothing may be changed before the user approves a plan.

- Look around first, until you know what has to be done. If a requirement is unclear, ask before you plan.
- Call it when the plan is complete: the steps, the files that change, and how you check the result. Do not ask in a text whether the plan is right: this tool asks.
- If the user approves, carry the plan out in this same turn. If not, change the plan by what they say and call the tool again.
- Do not use it when the user only wants an answer, and nothing is to be changed.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "plan": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "The plan, as Markdown, short enough to be read in a minute or two"}
  },
  "required": ["plan"],
  "additionalProperties": false
}`,
	ReadOnly: true, Idempotent: true,
}
