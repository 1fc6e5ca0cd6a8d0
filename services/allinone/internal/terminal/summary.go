package terminal

import (
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// summaryWidth is how many characters a summary has at most.
const summaryWidth = 100

// Summary describes an event on one line.
func Summary(e *sessionv1.Event) string { return Line(summary(e), summaryWidth) }

func summary(e *sessionv1.Event) string {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_SessionCreated:
		return b.SessionCreated.GetAgent()
	case *sessionv1.Event_TurnQueued:
		if call := b.TurnQueued.GetCall(); call != nil {
			return call.GetTool() + " " + Arguments(call.GetArgumentsJson())
		}
		return plain(b.TurnQueued.GetContent())
	case *sessionv1.Event_TurnStarted:
		return begun(b.TurnStarted)
	case *sessionv1.Event_TurnWaiting:
		return strings.Join(b.TurnWaiting.GetCallIds(), " ")
	case *sessionv1.Event_TurnFinished:
		f := b.TurnFinished
		return strings.TrimSpace(State(f.GetState()) + " " + f.GetError().GetReason() + " " + Used(f.GetUsage()))
	case *sessionv1.Event_StepStarted:
		return fmt.Sprintf("%d: %s, attempt %d", e.GetStep(), b.StepStarted.GetModel(), b.StepStarted.GetAttempt())
	case *sessionv1.Event_StepRestarted:
		return b.StepRestarted.GetReason()
	case *sessionv1.Event_StepFinished:
		return fmt.Sprintf("%d: %s, %s", e.GetStep(), b.StepFinished.GetStopReason(), Used(b.StepFinished.GetUsage()))
	case *sessionv1.Event_TextDelta:
		return b.TextDelta.GetText()
	case *sessionv1.Event_ThinkingDelta:
		return b.ThinkingDelta.GetText()
	case *sessionv1.Event_TodoUpdated:
		return plural(int64(len(b.TodoUpdated.GetTodos())), "item")
	case *sessionv1.Event_CheckpointCreated:
		return b.CheckpointCreated.GetCheckpoint() + " " + b.CheckpointCreated.GetDescription()
	case *sessionv1.Event_Warning:
		return remark(b.Warning.GetMessage(), b.Warning.GetReason())
	case *sessionv1.Event_Error:
		return remark(b.Error.GetMessage(), b.Error.GetReason())
	case *sessionv1.Event_SessionCompacted:
		return fmt.Sprintf("%d to %d tokens", b.SessionCompacted.GetTokensBefore(), b.SessionCompacted.GetTokensAfter())
	case *sessionv1.Event_SessionRewound:
		return strings.TrimSpace(fmt.Sprintf("void: %d to %d %s", b.SessionRewound.GetVoidFirstSeq(), b.SessionRewound.GetVoidLastSeq(), b.SessionRewound.GetCheckpoint()+b.SessionRewound.GetBeforeTurn()))
	case *sessionv1.Event_SessionRewindFailed:
		return remark(b.SessionRewindFailed.GetMessage(), b.SessionRewindFailed.GetReason())
	case *sessionv1.Event_CheckpointFailed:
		return remark(b.CheckpointFailed.GetMessage(), b.CheckpointFailed.GetReason())
	default:
		return callSummary(e) + setupSummary(e)
	}
}

// setupSummary returns the summary of what was set up, and of a judgement.
func setupSummary(e *sessionv1.Event) string {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_WorkspaceCreated:
		return b.WorkspaceCreated.GetNode()
	case *sessionv1.Event_RepositoryCloned:
		r := b.RepositoryCloned
		return strings.TrimSpace(r.GetUrl() + " to repos/" + r.GetDirectory() + " " + r.GetBranch())
	case *sessionv1.Event_EnvironmentSetUp:
		s := b.EnvironmentSetUp
		return strings.TrimSpace(fmt.Sprintf("%s: %s %s", s.GetEnvironment(), plural(int64(s.GetCommands()), "command"), s.GetFailure()))
	case *sessionv1.Event_FeedbackGiven:
		f := b.FeedbackGiven.GetFeedback()
		return strings.TrimSpace(strings.ToLower(strings.TrimPrefix(f.GetValue().String(), "FEEDBACK_VALUE_")) + " " + f.GetComment())
	case *sessionv1.Event_McpServerChanged:
		m := b.McpServerChanged
		return strings.TrimSpace(m.GetServer() + " " + strings.TrimPrefix(m.GetState().String(), "MCP_SERVER_STATE_") + " " + m.GetMessage())
	default:
		return ""
	}
}

// begun returns the model of a turn, its runtime unless that is the usual one, and what flags decided.
func begun(s *sessionv1.TurnStarted) string {
	words := []string{s.GetModel()}
	if r := s.GetRuntime(); r != "" && r != "native" {
		words = append(words, r)
	}
	for _, f := range s.GetFlags() {
		words = append(words, strings.TrimSuffix(fmt.Sprintf("%s=%s", f.GetFlag(), f.GetVariant()), "=")+" ("+f.GetReason()+")")
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// callSummary returns the summary of what happens to a call.
func callSummary(e *sessionv1.Event) string {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallStarted:
		return b.ToolCallStarted.GetTool()
	case *sessionv1.Event_ToolCallArgumentsDelta:
		return b.ToolCallArgumentsDelta.GetJson()
	case *sessionv1.Event_ToolCallArguments:
		return b.ToolCallArguments.GetTool() + " " + Arguments(b.ToolCallArguments.GetArgumentsJson())
	case *sessionv1.Event_ToolCallDecision:
		return strings.TrimPrefix(b.ToolCallDecision.GetDecision().String(), "DECISION_") + " " + b.ToolCallDecision.GetRule()
	case *sessionv1.Event_ToolCallProgress:
		return b.ToolCallProgress.GetMessage()
	case *sessionv1.Event_ToolCallOutputDelta:
		return b.ToolCallOutputDelta.GetStream() + ": " + string(b.ToolCallOutputDelta.GetData())
	case *sessionv1.Event_ToolCallFinished:
		f := b.ToolCallFinished
		return fmt.Sprintf("%s %s, %d ms: %s", f.GetTool(), strings.TrimPrefix(f.GetOutcome().String(), "TOOL_OUTCOME_"), f.GetDurationMs(), plain(f.GetContent()))
	case *sessionv1.Event_ApprovalRequested:
		return b.ApprovalRequested.GetTool() + " " + Arguments(b.ApprovalRequested.GetArgumentsJson())
	case *sessionv1.Event_QuestionRequested:
		q := b.QuestionRequested.GetQuestion()
		if items := q.GetItems(); len(items) > 0 {
			return items[0].GetQuestion()
		}
		return q.GetMessage()
	case *sessionv1.Event_QuestionResolved:
		return answered(b.QuestionResolved)
	case *sessionv1.Event_ApprovalResolved:
		return resolved(b.ApprovalResolved)
	case *sessionv1.Event_PermissionModeChanged:
		return Mode(b.PermissionModeChanged.GetBefore()) + " to " + Mode(b.PermissionModeChanged.GetMode())
	default:
		return ""
	}
}
