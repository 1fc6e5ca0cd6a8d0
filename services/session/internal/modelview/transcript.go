package modelview

import (
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Limits of one block in a transcript, in bytes.
const (
	maxSaid   = 16 << 10
	maxResult = 4 << 10
)

// Transcript formats messages as text, for a model that summarizes them. It
// leaves out thinking.
func Transcript(ms []*sessionv1.Message) string {
	var out strings.Builder
	tools := map[string]string{}
	for _, m := range ms {
		who := "User"
		switch {
		case m.Compaction != nil:
			who = "Summary of what came before"
		case m.Role == sessionv1.Role_ROLE_ASSISTANT:
			who = "Agent"
		}
		for _, b := range m.Blocks {
			switch k := b.Kind.(type) {
			case *sessionv1.Block_Content:
				fmt.Fprintf(&out, "%s: %s\n\n", who, written(k.Content, maxSaid))
			case *sessionv1.Block_ToolUse:
				tools[k.ToolUse.CallId] = k.ToolUse.Tool
				fmt.Fprintf(&out, "Agent calls %s: %s\n\n", k.ToolUse.Tool, cutMiddle(k.ToolUse.ArgumentsJson, maxResult))
			case *sessionv1.Block_ToolResult:
				outcome := strings.TrimPrefix(k.ToolResult.Outcome.String(), "TOOL_OUTCOME_")
				fmt.Fprintf(&out, "Result of %s (%s):", tools[k.ToolResult.CallId], outcome)
				for _, c := range k.ToolResult.Content {
					fmt.Fprintf(&out, " %s", written(c, maxResult))
				}
				out.WriteString("\n\n")
			}
		}
	}
	return out.String()
}

func written(c *commonv1.Content, most int) string {
	switch c = shown(c); c.Kind.(type) {
	case *commonv1.Content_Text:
		return cutMiddle(c.GetText().GetText(), most)
	case *commonv1.Content_Image:
		return "[an image]"
	default:
		return fmt.Sprintf("[a document: %s]", c.GetDocument().GetTitle())
	}
}
