package agui

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// fold takes an event of a lane's log.
func (e *Encoder) fold(l *lane, from *sessionv1.Event) {
	if e.foldTurn(l, from) || e.foldContent(l, from) || e.foldSubagent(l, from) {
		return
	}
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_Warning:
		e.note(l, b.Warning.GetMessage())
	case *sessionv1.Event_WorkspaceMoved:
		e.note(l, b.WorkspaceMoved.GetMessage())
	case *sessionv1.Event_WorkspaceCreated, *sessionv1.Event_RepositoryCloned, *sessionv1.Event_EnvironmentSetUp, *sessionv1.Event_McpServerChanged:
		e.custom(l, from)
		e.note(l, setUp(from))
	case *sessionv1.Event_TodoUpdated:
		if l.call != "" {
			e.custom(l, from)
			return
		}
		e.foldTodos(b.TodoUpdated)
	default:
		e.custom(l, from)
	}
}

// foldTurn takes the events of turns and steps.
func (e *Encoder) foldTurn(l *lane, from *sessionv1.Event) bool {
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_TurnQueued, *sessionv1.Event_TurnResumed, *sessionv1.Event_TurnSteered:
	case *sessionv1.Event_TurnStarted:
		if l.call == "" {
			e.model = b.TurnStarted.GetModel()
		}
	case *sessionv1.Event_TurnWaiting:
		e.wait(l, b.TurnWaiting)
	case *sessionv1.Event_TurnFinished:
		if l.call == "" {
			e.finish(b.TurnFinished)
		} else {
			e.closeLane(l)
		}
	case *sessionv1.Event_StepStarted:
		e.closeLane(l)
		l.step, l.attempt, l.lastText = from.GetStep(), b.StepStarted.GetAttempt(), ""
		l.openStep = fmt.Sprintf("step-%d", l.step)
		e.emit(l, event{"type": "STEP_STARTED", "stepName": l.openStep})
	case *sessionv1.Event_StepRestarted:
		e.restart(l)
	case *sessionv1.Event_StepFinished:
		e.closeLane(l)
		if e.live() {
			e.usage.add(b.StepFinished.GetUsage())
		}
	default:
		return false
	}
	return true
}

// restart takes back what a broken step has said.
func (e *Encoder) restart(l *lane) {
	base := l.base()
	e.closeLane(l)
	e.transcript.drop(func(id string) bool { return id == base || len(id) > len(base) && id[:len(base)+1] == base+"-" })
	for id, c := range e.calls {
		if c.lane == l && !c.done && (c.message == base || len(c.message) > len(base) && c.message[:len(base)+1] == base+"-") {
			delete(e.calls, id)
		}
	}
	e.emit(nil, e.transcript.snapshot(e.prior))
}

// foldContent takes what the model says, and its calls.
func (e *Encoder) foldContent(l *lane, from *sessionv1.Event) bool {
	block := func(n int32) string { return fmt.Sprintf("%s-%d", l.base(), n) }
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_TextStarted:
		e.openText(l, block(b.TextStarted.GetBlock()))
	case *sessionv1.Event_TextDelta:
		id := block(b.TextDelta.GetBlock())
		e.openText(l, id)
		e.textDelta(l, id, b.TextDelta.GetText())
	case *sessionv1.Event_TextFinished:
		e.closeText(l)
	case *sessionv1.Event_ThinkingStarted:
		e.openReasoning(l, block(b.ThinkingStarted.GetBlock()))
	case *sessionv1.Event_ThinkingDelta:
		id := block(b.ThinkingDelta.GetBlock())
		e.openReasoning(l, id)
		if text := b.ThinkingDelta.GetText(); text != "" {
			if e.live() {
				e.transcript.add(id, "reasoning", l.call, text)
			}
			e.emit(l, event{"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text})
		}
	case *sessionv1.Event_ThinkingFinished:
		e.closeReasoning(l)
	default:
		return e.foldCall(l, from)
	}
	return true
}

// foldCall takes the events of calls.
func (e *Encoder) foldCall(l *lane, from *sessionv1.Event) bool {
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_ToolCallStarted:
		e.startCall(l, b.ToolCallStarted.GetCallId(), b.ToolCallStarted.GetTool())
	case *sessionv1.Event_ToolCallArgumentsDelta:
		if c := e.calls[b.ToolCallArgumentsDelta.GetCallId()]; c != nil {
			e.addArguments(c, b.ToolCallArgumentsDelta.GetJson())
		}
	case *sessionv1.Event_ToolCallArguments:
		a := b.ToolCallArguments
		c := e.startCall(l, a.GetCallId(), a.GetTool())
		if c.arguments == "" {
			e.addArguments(c, a.GetArgumentsJson())
		}
		e.endCall(c)
	case *sessionv1.Event_ToolCallFinished:
		e.finishCall(l, b.ToolCallFinished)
	case *sessionv1.Event_ApprovalRequested:
		e.asks = append(e.asks, &ask{at: e.now, lane: l, call: b.ApprovalRequested.GetCallId(), approval: b.ApprovalRequested})
	case *sessionv1.Event_ApprovalResolved:
		e.resolve(b.ApprovalResolved.GetCallId(), "")
		e.custom(l, from)
	case *sessionv1.Event_QuestionRequested:
		q := b.QuestionRequested
		e.asks = append(e.asks, &ask{at: e.now, lane: l, call: q.GetCallId(), question: q})
	case *sessionv1.Event_QuestionResolved:
		e.resolve(b.QuestionResolved.GetCallId(), b.QuestionResolved.GetQuestionId())
		e.custom(l, from)
	default:
		return false
	}
	return true
}

// foldTodos takes the list of things to do.
func (e *Encoder) foldTodos(u *sessionv1.TodoUpdated) {
	e.todos = nil
	for _, t := range u.GetTodos() {
		e.todos = append(e.todos, map[string]string{"content": t.GetContent(), "status": t.GetStatus(), "activeForm": t.GetActiveForm()})
	}
	if e.HasState && e.HasOwn {
		e.emit(nil, event{"type": "STATE_DELTA", "delta": []any{event{"op": "add", "path": "/fairlead/todos", "value": listOf(e.todos)}}})
	}
}

// setUp says for people what was set up for the agent. A setup that failed has a warning of its own.
func setUp(from *sessionv1.Event) string {
	switch b := from.GetBody().(type) {
	case *sessionv1.Event_WorkspaceCreated:
		return "The workspace was made."
	case *sessionv1.Event_RepositoryCloned:
		r := b.RepositoryCloned
		at := ""
		if r.GetBranch() != "" {
			at = ", on branch " + r.GetBranch()
		}
		return fmt.Sprintf("The repository %s was cloned to repos/%s%s.", r.GetUrl(), r.GetDirectory(), at)
	case *sessionv1.Event_EnvironmentSetUp:
		if s := b.EnvironmentSetUp; s.GetFailure() == "" {
			return fmt.Sprintf("The environment %s is set up: its %d commands ran.", wire.LastPart(s.GetEnvironment()), s.GetCommands())
		}
	case *sessionv1.Event_McpServerChanged:
		m := b.McpServerChanged
		if m.GetState() == commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED {
			return fmt.Sprintf("The MCP server %s is connected. Its tools: %s.", m.GetServer(), strings.Join(m.GetTools(), ", "))
		}
		return m.GetMessage()
	}
	return ""
}

// note says something to people that the model did not say.
func (e *Encoder) note(l *lane, text string) {
	if text == "" || !e.live() {
		return
	}
	id := fmt.Sprintf("%s-note-%d", e.lanes[""].turn, e.now)
	e.transcript.add(id, "developer", l.call, text)
	e.emit(l, event{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "developer"})
	e.emit(l, event{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text})
	e.emit(l, event{"type": "TEXT_MESSAGE_END", "messageId": id})
}

// custom passes on an event for which the protocol has no form.
func (e *Encoder) custom(l *lane, from *sessionv1.Event) {
	if !e.live() {
		return
	}
	m := from.ProtoReflect()
	f := m.WhichOneof(m.Descriptor().Oneofs().ByName("body"))
	if f == nil {
		return
	}
	b, err := protojson.Marshal(m.Get(f).Message().Interface())
	if err != nil {
		return // it came over the network, and can be marshaled
	}
	var value any
	if json.Unmarshal(b, &value) != nil { // the text of protojson differs from build to build
		return
	}
	e.emit(l, event{"type": "CUSTOM", "name": "fairlead." + sessionv1.EventName(from), "value": value})
}

// text returns the texts of a content.
func text(content []*commonv1.Content) (all string) {
	for i, c := range content {
		t := c.GetText().GetText()
		if r := c.GetResource(); r != nil {
			t = r.GetText()
		}
		if t == "" {
			continue
		}
		if i > 0 && all != "" {
			all += "\n"
		}
		all += t
	}
	return all
}
