package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// createAgentSpec and editAgentSpec have no runner: the session makes agents.
var createAgentSpec = tool.Spec{
	Name: "create_agent",
	Description: `Makes a new agent of this tenant, for sessions that name it. It has your permission profile, environment and limits, and tools that you choose of your own. It does not get create_agent and edit_agent.

Write its prompt as if to someone who knows nothing of this conversation: what it is for, how it works, and when it is done.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$", "description": "The agent's name, as in: release-notes"},
    "description": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What it is for, in a sentence"},
    "prompt": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "Its system prompt"},
    "tools": {"type": "array", "maxItems": 100, "items": {"type": "string", "minLength": 1}, "description": "Its tools, of yours"},
    "model": {"type": "string", "maxLength": 256, "description": "Its model, as provider:model, if not yours"}
  },
  "required": ["name", "description", "prompt", "tools"],
  "additionalProperties": false
}`,
	Idempotent: true,
}

var editAgentSpec = tool.Spec{
	Name:        "edit_agent",
	Description: `Makes a new version of an agent that was made with create_agent. What you leave out stays as it is. Sessions that exist keep their version.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$", "description": "The agent's name"},
    "version": {"type": "integer", "minimum": 1, "description": "The newest version that you know. If there is a newer one, nothing is changed"},
    "description": {"type": "string", "minLength": 1, "maxLength": 1000},
    "prompt": {"type": "string", "minLength": 1, "maxLength": 65536},
    "tools": {"type": "array", "maxItems": 100, "items": {"type": "string", "minLength": 1}, "description": "All its tools, of yours"},
    "model": {"type": "string", "maxLength": 256}
  },
  "required": ["name"],
  "additionalProperties": false
}`,
	Idempotent: true,
}
