package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// todoWriteSpec has no runner: the session keeps the list.
var todoWriteSpec = tool.Spec{
	Name: "TodoWrite",
	Description: `Keeps a list of what is to be done in this session, which the user sees. Send the whole list every time; it replaces the one before.

Use it for work of three or more steps. Have exactly one item in_progress while you work, and mark an item completed as soon as it is done, not later.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "todos": {
      "type": "array",
      "maxItems": 200,
      "description": "The whole list",
      "items": {
        "type": "object",
        "properties": {
          "content": {"type": "string", "minLength": 1, "description": "What is to be done, as in: Run the tests"},
          "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
          "activeForm": {"type": "string", "minLength": 1, "description": "The same while it is being done, as in: Running the tests"}
        },
        "required": ["content", "status", "activeForm"],
        "additionalProperties": false
      }
    }
  },
  "required": ["todos"],
  "additionalProperties": false
}`,
	Idempotent: true,
}
