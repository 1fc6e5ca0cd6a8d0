package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// skillSpec has no runner: the session knows its skills. Only sessions that have some offer it.
var skillSpec = tool.Spec{
	Name: "Skill",
	Description: `Reads the instructions of a skill that this session has. The system prompt lists the skills with what each is for.

Call it before you begin a task that fits a skill, and follow what it returns. It also names the skill's folder: read further files there with Read, and run its scripts with Bash, only when the instructions ask for it.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "skill": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The name of the skill, as the list has it"}
  },
  "required": ["skill"],
  "additionalProperties": false
}`,
	ReadOnly: true, Parallel: true, Idempotent: true,
}
