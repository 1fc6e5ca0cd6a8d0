package builtin

import (
	"context"

	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

var multiEditSpec = tool.Spec{
	Name: "MultiEdit",
	Description: `Makes several replacements in one file of the workspace, one after the other, each on the result of the one before: all of them, or none when one fails.

Each edit follows the rules of Edit. Mind that an edit may change the text that a later one looks for. An empty old_string in the first edit makes a new file.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to change"},
    "edits": {
      "type": "array",
      "minItems": 1,
      "maxItems": 1000,
      "description": "The replacements, in order",
      "items": {
        "type": "object",
        "properties": {
          "old_string": {"type": "string", "description": "The text to replace"},
          "new_string": {"type": "string", "description": "The text to put there; not the same"},
          "replace_all": {"type": "boolean", "description": "Replace every occurrence; false when left out"}
        },
        "required": ["old_string", "new_string"],
        "additionalProperties": false
      }
    }
  },
  "required": ["file_path", "edits"],
  "additionalProperties": false
}`,
}

type multiEdit struct{ effects }

// Run makes the edits. The sandbox does it once per call id.
func (m multiEdit) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	var p struct {
		FilePath string `json:"file_path"`
		Edits    []replacement
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	return m.change(ctx, c, p.FilePath, p.Edits)
}
