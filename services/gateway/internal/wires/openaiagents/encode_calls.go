package openaiagents

import (
	"encoding/json"
	"fmt"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// commandTool is our tool that is the wire's command execution.
const commandTool = "Bash"

// tool takes the events of tool calls.
func (e *Encoder) tool(ev *sessionv1.Event) {
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_ToolCallArguments:
		a := b.ToolCallArguments
		if old := e.calls[a.GetCallId()]; old != nil && old.told {
			old.arguments = a.GetArgumentsJson()
			return
		}
		e.calls[a.GetCallId()] = &call{id: a.GetCallId(), tool: a.GetTool(), arguments: a.GetArgumentsJson(), seq: ev.GetFirstSeq(), client: e.client[a.GetTool()]}
		e.step.calls = append(e.step.calls, a.GetCallId())
	case *sessionv1.Event_ToolCallDecision:
		e.commit()
		if c := e.calls[b.ToolCallDecision.GetCallId()]; c != nil && !c.client {
			e.use(c)
		}
	case *sessionv1.Event_ToolCallOutputDelta:
		e.says(e.calls[b.ToolCallOutputDelta.GetCallId()], b.ToolCallOutputDelta.GetData())
	case *sessionv1.Event_ApprovalRequested:
		e.asked.approvals[b.ApprovalRequested.GetCallId()] = b.ApprovalRequested
	case *sessionv1.Event_QuestionRequested:
		q := b.QuestionRequested
		as := &call{id: wire.AskID(q.GetCallId(), q.GetQuestion().GetId()), tool: wire.AskTool, arguments: string(wire.AskArguments(q.GetQuestion())), seq: ev.GetFirstSeq(), client: true}
		e.asked.questions = append(e.asked.questions, &question{q, as})
	case *sessionv1.Event_QuestionResolved:
		e.answered(b.QuestionResolved)
	case *sessionv1.Event_ToolCallFinished:
		e.result(b.ToolCallFinished)
	}
}

// item returns the item of a call without what its end brings.
func (c *call) item(turn string) map[string]any {
	item := map[string]any{"id": callItem(c.id), "turn_id": turn, "status": inProgress}
	switch server, name := serverOf(c.tool); {
	case c.client:
		item["type"], item["call_id"], item["name"], item["arguments"] = kindFunction, c.id, c.tool, arguments(c.arguments)
	case c.tool == commandTool:
		var in struct {
			Command string `json:"command"`
		}
		_ = json.Unmarshal([]byte(c.arguments), &in)
		item["type"], item["command"], item["cwd"] = kindCommand, in.Command, "/workspace"
		item["exit_code"], item["duration_ms"], item["output"] = nil, nil, nil
	default:
		if server == "" {
			server = ownServer
		}
		item["type"], item["server_label"], item["name"], item["arguments"], item["output"], item["error"] = kindMCP, server, name, arguments(c.arguments), nil, nil
	}
	return item
}

// use tells of a call whose arguments are complete and committed.
func (e *Encoder) use(c *call) {
	if c.told {
		return
	}
	c.told, c.index = true, e.next()
	e.inTurn(itemAdded, "output_index", c.index, "item", c.item(wire.LastPart(e.active.GetName())))
}

// says tells what a running command prints. A character that is cut waits for its rest.
func (e *Encoder) says(c *call, data []byte) {
	if c == nil || c.client || c.tool != commandTool || !c.told {
		return
	}
	c.output.Write(data)
	text := c.output.String()[c.sent:]
	text = text[:len(text)-torn(text)]
	if text == "" {
		return
	}
	c.sent += len(text)
	body := e.inTurn(outputOfACall, "delta", text)
	body["item_id"], body["output_index"] = callItem(c.id), c.index
	e.reached(c.sent)
}

// exitCode returns the number that a command has left, as our tool says it; null where there is none.
func exitCode(status, text string) any {
	if status == completed {
		return 0
	}
	var code int
	if _, err := fmt.Sscanf(text, "Exit code %d", &code); err != nil {
		return nil
	}
	return code
}

// torn returns how many bytes at the end of a text begin a character and are not the whole of it.
func torn(text string) int {
	for n := 1; n <= 3 && n <= len(text); n++ {
		switch b := text[len(text)-n]; {
		case b < 0x80:
			return 0
		case b >= 0xf0 && n < 4, b >= 0xe0 && b < 0xf0 && n < 3, b >= 0xc0 && b < 0xe0 && n < 2:
			return n
		case b >= 0xc0:
			return 0
		}
	}
	return 0
}

// answered tells what a person answered, as the result of a function.
func (e *Encoder) answered(r *sessionv1.QuestionResolved) {
	id := wire.AskID(r.GetCallId(), r.GetQuestionId())
	i := slices.IndexFunc(e.asked.questions, func(q *question) bool { return q.as.id == id })
	if i < 0 {
		return
	}
	c := e.asked.questions[i].as
	e.asked.questions = slices.Delete(e.asked.questions, i, i+1)
	status, text := completed, r.GetContentJson()
	if r.GetAction() != commonv1.QuestionAction_QUESTION_ACTION_ACCEPT {
		status, text = failed, "There is no answer."
	}
	e.use(c)
	item := c.item(wire.LastPart(e.active.GetName()))
	item["status"] = status
	e.inTurn(itemDone, "output_index", c.index, "item", item)
	e.returned(c, status, text)
}

// result tells how a call ended.
func (e *Encoder) result(f *sessionv1.ToolCallFinished) {
	c := e.calls[f.GetCallId()]
	if c == nil || c.done || e.active == nil {
		return // CallTool made it, and no model
	}
	c.done = true
	e.commit()
	e.use(c)
	turn := wire.LastPart(e.active.GetName())
	item, status, text := c.item(turn), completed, plain(f.GetContent())
	switch f.GetOutcome() {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK:
	case sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		status = incomplete
	default:
		status = failed
	}
	item["status"] = status
	switch item["type"] {
	case kindCommand:
		item["output"], item["duration_ms"] = text, f.GetDurationMs()
		item["exit_code"] = exitCode(status, text)
	case kindMCP:
		if status == completed {
			item["output"] = text
		} else {
			item["error"] = text
		}
	}
	e.inTurn(itemDone, "output_index", c.index, "item", item)
	if c.client {
		e.returned(c, status, text)
	}
}

// returned tells the result of a function of the client's.
func (e *Encoder) returned(c *call, status, text string) {
	out := map[string]any{"id": outputItem(c.id), "type": "function_call_output", "turn_id": wire.LastPart(e.active.GetName()), "call_id": c.id, "output": nil, "error": nil, "status": status}
	if status == completed {
		out["output"] = text
	} else {
		out["error"] = text
	}
	e.inTurn(itemAdded, "output_index", nil, "item", out)
}
