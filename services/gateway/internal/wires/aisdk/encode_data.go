package aisdk

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// extra shows as data what the protocol has no chunk of its own for. Names and values are those of our events.
func (t *turn) extra(e *sessionv1.Event) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TodoUpdated:
		t.data("todo", "todo", false, plain(b.TodoUpdated))
	case *sessionv1.Event_CheckpointCreated:
		t.data("checkpoint", wire.LastPart(b.CheckpointCreated.GetCheckpoint()), false, plain(b.CheckpointCreated))
	case *sessionv1.Event_QuestionRequested:
		t.question(b.QuestionRequested)
	case *sessionv1.Event_QuestionResolved:
		t.data("question", questionID(b.QuestionResolved.GetCallId(), b.QuestionResolved.GetQuestionId()), false, plain(b.QuestionResolved))
	case *sessionv1.Event_OperationStarted:
		t.data("operation", wire.LastPart(b.OperationStarted.GetOperation()), false, plain(b.OperationStarted))
	case *sessionv1.Event_OperationProgress:
		t.data("operation", wire.LastPart(b.OperationProgress.GetOperation()), false, plain(b.OperationProgress))
	case *sessionv1.Event_OperationFinished:
		t.data("operation", wire.LastPart(b.OperationFinished.GetOperation()), false, plain(b.OperationFinished))
	case *sessionv1.Event_SubagentStarted:
		t.data("subagent", b.SubagentStarted.GetCallId(), false, plain(b.SubagentStarted))
	case *sessionv1.Event_SubagentFinished:
		t.data("subagent", b.SubagentFinished.GetCallId(), false, plain(b.SubagentFinished))
	case *sessionv1.Event_SubagentEvent:
		t.data("subagent-event", b.SubagentEvent.GetCallId(), true, plain(b.SubagentEvent))
	case *sessionv1.Event_ArtifactsChanged:
		t.data("artifacts", "artifacts", false, plain(b.ArtifactsChanged))
	case *sessionv1.Event_SessionCompacted:
		t.data("compaction", wire.LastPart(b.SessionCompacted.GetMessage()), false, plain(b.SessionCompacted))
	case *sessionv1.Event_WorkspaceCreated:
		t.data("workspace", "workspace", true, plain(b.WorkspaceCreated))
	case *sessionv1.Event_RepositoryCloned:
		t.data("repository", b.RepositoryCloned.GetDirectory(), true, plain(b.RepositoryCloned))
	case *sessionv1.Event_McpServerChanged:
		t.data("mcp-server", b.McpServerChanged.GetServer(), true, plain(b.McpServerChanged))
	case *sessionv1.Event_EnvironmentSetUp:
		t.data("environment", "environment", true, plain(b.EnvironmentSetUp))
	case *sessionv1.Event_Warning:
		t.data("warning", "warning", true, plain(b.Warning))
	case *sessionv1.Event_Error:
		t.data("error", "error", true, plain(b.Error))
	}
}

func questionID(call, question string) string { return call + "." + question }

// question shows a question; a result of its call, from the browser, answers it.
func (t *turn) question(q *sessionv1.QuestionRequested) {
	t.arguments(q.GetCallId(), q.GetTool(), "")
	t.data("question", questionID(q.GetCallId(), q.GetQuestion().GetId()), false, plain(q))
}

// plain returns a message as JSON, as REST shows it.
func plain(m proto.Message) json.RawMessage {
	b, err := jsontext.AppendMessage(nil, m) // the same bytes each time
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
