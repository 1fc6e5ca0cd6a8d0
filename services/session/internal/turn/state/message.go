package state

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// The tools that the session runs itself.
const (
	TodoTool     = "TodoWrite"       // the session's own list of things to do
	QuestionTool = "AskUserQuestion" // asks a person
)

// CallID returns the id of a call. The turn, the step and the call's place in the
// assistant message determine it, so that a successor uses the same id.
func CallID(turn string, step int32, index int) string {
	return turn + "." + strconv.Itoa(int(step)) + "." + strconv.Itoa(index)
}

// ToolUses returns the calls of an assistant message.
func ToolUses(m *sessionv1.Message) []*sessionv1.ToolUse {
	if m.GetRole() != sessionv1.Role_ROLE_ASSISTANT {
		return nil
	}
	return ToolUsesOf(m.Blocks)
}

// ToolUsesOf returns the calls in the blocks of a message.
func ToolUsesOf(blocks []*sessionv1.Block) []*sessionv1.ToolUse {
	var uses []*sessionv1.ToolUse
	for _, b := range blocks {
		if u := b.GetToolUse(); u != nil {
			uses = append(uses, u)
		}
	}
	return uses
}

// Text returns text as content.
func Text(text string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}
}

// TextBlock returns text as a block of a message.
func TextBlock(text string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: Text(text)}}
}

// TextResult returns a result whose content is text.
func TextResult(callID string, outcome sessionv1.ToolOutcome, text string) *sessionv1.ToolResult {
	return &sessionv1.ToolResult{CallId: callID, Outcome: outcome, Content: []*commonv1.Content{Text(text)}}
}

// Warning returns an event that warns people.
func Warning(reason, message string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Reason: reason, Message: message}}}
}

// SkillDeleted warns people that the session goes on without one of its skills.
func SkillDeleted(s agent.Skill) *sessionv1.Event {
	return Warning("SKILL_DELETED", fmt.Sprintf("The skill %s of this session was deleted since the session began. The session goes on without it. Add the skill again and begin a new session to have it.", s.Label()))
}

// MountMissing warns people that the session goes on without one of its optional mounts.
func MountMissing(name string) *sessionv1.Event {
	return Warning("MOUNT_MISSING", fmt.Sprintf("The mount %s does not exist, is not for the turn's user, or lacks its folder. The session goes on without it, because it does not require it. The sandbox's operator can add it.", name))
}

// PromptTokens returns all tokens of the prompt, cached or not.
func PromptTokens(u *sessionv1.Usage) int64 {
	return u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens()
}

// TurnError returns the error of a turn's end.
func TurnError(reason sessionv1.ErrorReason, message string) *sessionv1.TurnError {
	return &sessionv1.TurnError{Reason: ReasonName(reason), Message: message}
}

// ReasonName returns a reason's name in the log.
func ReasonName(r sessionv1.ErrorReason) string {
	return apierr.Name(r)
}

// Explain returns an error's text for people, ending in a full stop.
func Explain(err error) string {
	text := apierr.Message(err)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// LastSegment returns the id at the end of a resource name.
func LastSegment(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Now returns the current time.
func Now() *timestamppb.Timestamp { return timestamppb.Now() }
