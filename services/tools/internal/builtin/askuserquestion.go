package builtin

import "github.com/fairlead/fairlead/services/tools/internal/tool"

// askUserQuestionSpec has no runner: the session asks.
var askUserQuestionSpec = tool.Spec{
	Name: "AskUserQuestion",
	Description: `Asks the user up to four questions and waits for the answers.

Use it when a decision is the user's to make and you cannot find the answer yourself: an unclear requirement, a choice between ways to do the work, a preference. Do not use it to ask whether you may go on.

- Each question has two to four options; the user can always write another answer, so do not add an option such as "other".
- Put the option that you recommend first, and add "(recommended)" to its label.
- Set multiSelect if several options can hold at the same time.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "questions": {
      "type": "array",
      "minItems": 1,
      "maxItems": 4,
      "description": "The questions",
      "items": {
        "type": "object",
        "properties": {
          "question": {"type": "string", "minLength": 1, "description": "The whole question, ending in a question mark. No two questions are the same"},
          "header": {"type": "string", "minLength": 1, "maxLength": 40, "description": "A word or two to show above the question, such as: Database"},
          "options": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "description": "The options, of which no two have the same label",
            "items": {
              "type": "object",
              "properties": {
                "label": {"type": "string", "minLength": 1, "description": "What is chosen, in one to five words"},
                "description": {"type": "string", "description": "What the option means, or what follows from it"}
              },
              "required": ["label", "description"],
              "additionalProperties": false
            }
          },
          "multiSelect": {"type": "boolean", "description": "Whether several options may be chosen; by default one"}
        },
        "required": ["question", "header", "options"],
        "additionalProperties": false
      }
    }
  },
  "required": ["questions"],
  "additionalProperties": false
}`,
	ReadOnly: true, Idempotent: true,
}
