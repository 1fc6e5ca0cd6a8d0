package agui

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// ask is what a person is asked: an approval or a question.
type ask struct {
	lane     *lane
	call     string
	approval *sessionv1.ApprovalRequested
	question *sessionv1.QuestionRequested
	resolved bool
	// at is the number of the event that asks, and until that of the answer; 0: none yet.
	at, until int64
}

// key names what is asked, within its turn.
func (a *ask) key() string {
	if a.question != nil {
		return a.call + "/" + a.question.GetQuestion().GetId()
	}
	return a.call
}

// resolve takes the answer to what was asked. A second question for the same call is open again.
func (e *Encoder) resolve(call, question string) {
	for _, a := range e.asks {
		if a.call == call && (question == "" && a.question == nil || a.question.GetQuestion().GetId() == question && a.question != nil) {
			if !a.resolved {
				a.resolved, a.until = true, e.now
			}
			delete(e.Answered, a.key())
		}
	}
}

// open returns what a person is asked and neither the log nor the request of the run has answered.
func (e *Encoder) openAsks() (open []*ask) {
	for _, a := range e.asks {
		_, answered := e.Answered[a.key()]
		if c := e.calls[a.call]; !a.resolved && !answered && (c == nil || !c.done) {
			open = append(open, a)
		}
	}
	return open
}

// wait ends the run if the turn, or a subagent of it, waits for more than the request of the run answers.
func (e *Encoder) wait(l *lane, w *sessionv1.TurnWaiting) {
	asks, pending := e.openAsks(), e.pending(l, w)
	if !e.live() {
		return
	}
	if len(asks) == 0 && len(pending) == 0 {
		return
	}
	e.status("waiting")
	e.closeAll(asks)
	outcome := event{"type": "success", "pendingToolCallIds": pending}
	if len(asks) > 0 {
		interrupts := []any{}
		for _, a := range asks {
			interrupts = append(interrupts, e.interrupt(a))
		}
		outcome = event{"type": "interrupt", "interrupts": interrupts}
	}
	e.end(event{"type": "RUN_FINISHED", "threadId": e.ThreadID, "runId": e.RunID, "outcome": outcome})
}

// pending returns the calls for whose results of the client the turn waits, without those that the request has.
func (e *Encoder) pending(l *lane, w *sessionv1.TurnWaiting) (ids []string) {
	asked := map[string]bool{}
	for _, a := range e.asks {
		asked[a.call] = asked[a.call] || !a.resolved
	}
	for _, id := range w.GetCallIds() {
		c := e.calls[id]
		if l.call != "" || asked[id] || c == nil || c.done {
			continue
		}
		c.waited = e.now
		if _, answered := e.Answered[id]; !answered {
			ids = append(ids, id)
		}
	}
	return ids
}

// end emits the last event of the run.
func (e *Encoder) end(ev event) {
	e.emit(nil, e.usage.of(e.model, ev))
	e.done = e.live()
}

// interruptID names what is asked: the turn, the number at which its run ended, and the question.
func (a *ask) interruptID(turn string, seq int64) string {
	return wire.LastPart(turn) + "/" + strconv.FormatInt(seq, 10) + "/" + a.key()
}

// interrupt returns what a person is asked in the form of the protocol.
func (e *Encoder) interrupt(a *ask) event {
	i := event{"id": a.interruptID(e.Turn, e.now)}
	if a.lane.call != "" {
		i["subagentRunId"] = a.lane.call
	}
	if e.calls[a.call] != nil {
		i["toolCallId"] = a.call
	}
	if q := a.question; q != nil {
		i["reason"], i["message"], i["responseSchema"] = "input_required", q.GetQuestion().GetMessage(), questionSchema(q)
		if q.GetExpireTime() != nil {
			i["expiresAt"] = q.GetExpireTime().AsTime().UTC().Format(time.RFC3339Nano)
		}
		if u := q.GetQuestion().GetUrl(); u != "" {
			i["metadata"] = event{"url": u}
		}
		return i
	}
	p := a.approval
	i["message"], i["responseSchema"] = p.GetMessage(), approvalSchema(p)
	i["reason"] = "tool_call"
	if p.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET || p.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
		i["reason"] = "confirmation"
	}
	if p.GetMessage() == "" {
		i["message"] = "May the agent use " + p.GetTool() + "?"
	}
	if p.GetExpireTime() != nil {
		i["expiresAt"] = p.GetExpireTime().AsTime().UTC().Format(time.RFC3339Nano)
	}
	i["metadata"] = event{"tool": p.GetTool(), "arguments": p.GetArgumentsJson(), "rule": p.GetRule(), "suggestedRules": append([]string{}, p.GetSuggestedRules()...)}
	return i
}

// approvalSchema returns what an answer to an approval may have.
func approvalSchema(p *sessionv1.ApprovalRequested) event {
	members := event{
		"approved": event{"type": "boolean"},
		"comment":  event{"type": "string", "description": "What the agent is told."},
	}
	if p.GetKind() != sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET {
		members["editedArgs"] = event{"type": "object", "description": "The arguments with which the call runs instead."}
	}
	if len(p.GetSuggestedRules()) > 0 {
		members["scope"] = event{"type": "string", "enum": []string{"once", "session", "always"}, "description": "For how long the approval holds."}
		members["rule"] = event{"type": "string", "enum": append([]string{}, p.GetSuggestedRules()...)}
	}
	if p.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
		members["mode"] = event{"type": "string", "enum": []string{"default", "accept_edits"}}
	}
	return event{"type": "object", "properties": members, "required": []string{"approved"}}
}

// questionSchema returns what an answer to a question has: the fields of its form, or its items' answers.
func questionSchema(q *sessionv1.QuestionRequested) any {
	if s := q.GetQuestion().GetSchemaJson(); s != "" && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	if len(q.GetQuestion().GetItems()) == 0 {
		return event{"type": "object"}
	}
	answers := event{}
	for _, item := range q.GetQuestion().GetItems() {
		labels := []any{}
		for _, o := range item.GetOptions() {
			labels = append(labels, o.GetLabel())
		}
		one := event{"type": "string", "examples": labels}
		if item.GetMultiple() {
			one = event{"type": "array", "items": one}
		}
		answers[item.GetQuestion()] = one
	}
	return event{"type": "object", "properties": event{"answers": event{"type": "object", "properties": answers}}, "required": []string{"answers"}}
}

// finish ends the run with its turn.
func (e *Encoder) finish(f *sessionv1.TurnFinished) {
	if !e.live() {
		return
	}
	state := strings.ToLower(strings.TrimPrefix(f.GetState().String(), "TURN_STATE_"))
	e.closeAll(nil)
	if f.GetError().GetReason() == "ROLLED_BACK" {
		e.transcript.messages = nil
		e.emit(nil, e.transcript.snapshot(e.prior))
	}
	e.status(state)
	done := event{"type": "RUN_FINISHED", "threadId": e.ThreadID, "runId": e.RunID}
	switch f.GetState() {
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		if f.GetOutputJson() != "" && json.Valid([]byte(f.GetOutputJson())) {
			done["result"] = json.RawMessage(f.GetOutputJson())
		}
		done["outcome"] = event{"type": "success"}
	case sessionv1.TurnState_TURN_STATE_PARTIAL, sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		if e.Old {
			done = runError("cancelled", f.GetError().GetMessage())
			break
		}
		e.emit(nil, event{"type": "CUSTOM", "name": "fairlead.turn_error", "value": event{"reason": f.GetError().GetReason(), "message": f.GetError().GetMessage()}})
		done["outcome"] = event{"type": "cancelled"}
	default:
		done = runError(f.GetError().GetReason(), f.GetError().GetMessage())
	}
	if !e.Old {
		done["metadata"] = totals(f)
	}
	e.end(done)
}

// totals returns what a turn, and its session so far, took.
func totals(f *sessionv1.TurnFinished) event {
	session := f.GetSessionUsage()
	return event{
		"durationMs": f.GetDurationMs(), "model": f.GetModel(), "steps": f.GetSteps(), "toolErrors": f.GetToolErrors(), "costNanoUsd": f.GetUsage().GetCostNanoUsd(),
		"session": event{
			"turns": f.GetSessionTurns(), "inputTokens": session.GetInputTokens() + session.GetCacheReadTokens() + session.GetCacheWriteTokens(),
			"outputTokens": session.GetOutputTokens(), "costNanoUsd": session.GetCostNanoUsd(),
		},
	}
}

// closeAll closes what all agents have open, subagents first. Those of which something is asked are suspended.
func (e *Encoder) closeAll(asks []*ask) {
	var ids []string
	for id := range e.lanes {
		ids = append(ids, id)
	}
	sort.Sort(sort.Reverse(sort.StringSlice(ids)))
	depth := func(l *lane) (n int) {
		for ; l != nil; l = l.parent {
			n++
		}
		return n
	}
	slices.SortStableFunc(ids, func(a, b string) int { return depth(e.lanes[b]) - depth(e.lanes[a]) })
	for _, id := range ids {
		l := e.lanes[id]
		e.closeLane(l)
		if l.call == "" || !l.announced {
			continue
		}
		outcome := event{"type": "suspended"}
		var of []string
		for _, a := range asks {
			if a.lane == l {
				of = append(of, a.interruptID(e.Turn, e.now))
			}
		}
		if len(of) > 0 {
			outcome["interruptIds"] = of
		}
		e.emit(nil, event{"type": "SUBAGENT_FINISHED", "subagentRunId": l.call, "outcome": outcome})
		l.announced = false
	}
}
