package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// taskSpec has no runner: the session gives the work to a subagent. The session also adds to the
// description which subagents there are.
var taskSpec = tool.Spec{
	Name: "Task",
	Description: `Gives a part of the work to a subagent, which does it alone and answers with one text. It works with the same files, and does not see this conversation: put into the prompt everything that it needs to know, and say what it is to answer.

Give independent parts to several subagents in one answer: they work at the same time. The answer is for you; the user does not see it.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "description": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What the subagent is to do, in three to five words"},
    "prompt": {"type": "string", "minLength": 1, "description": "The work, with everything that the subagent needs to know"},
    "subagent_type": {"type": "string", "minLength": 1, "description": "The name of the subagent"}
  },
  "required": ["description", "prompt", "subagent_type"],
  "additionalProperties": false
}`,
	Parallel: true,
}
