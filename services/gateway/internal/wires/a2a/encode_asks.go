package a2a

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	log "github.com/fairlead/fairlead/clients/go/fold"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// ask is what the client is asked: an approval or a question.
type ask struct {
	*log.Ask
	session  string // where it is answered
	resolved bool
}

// open returns what is asked and not answered.
func (f *fold) open() (all []*ask) {
	for _, a := range f.asked {
		if !a.resolved {
			all = append(all, a)
		}
	}
	return all
}

// foldAsks takes what an event says of questions: of the turn itself, or of a subagent's session.
func (f *fold) foldAsks(e *sessionv1.Event) {
	if terminal(f.status.State) {
		return
	}
	asked, closed := f.asks.Take(e)
	if asked != nil {
		f.asked = append(f.asked, &ask{Ask: asked, session: cmp.Or(asked.Session, f.session())})
	}
	if len(closed) > 0 {
		f.close(e, closed)
	}
	inner := e
	for inner.GetSubagentEvent() != nil {
		inner = inner.GetSubagentEvent().GetEvent()
	}
	switch {
	case inner.GetTurnWaiting() != nil:
		f.wait(e)
	case inner.GetTurnResumed() != nil && len(f.open()) == 0 && f.status.State != stateWorking:
		f.set(e, stateWorking, nil)
	}
}

// close takes the answers to what was asked.
func (f *fold) close(e *sessionv1.Event, closed []*log.Ask) {
	for _, a := range f.asked {
		if slices.Contains(closed, a.Ask) {
			a.resolved = true
			delete(f.answered, a.key()) // the same call may ask again
		}
	}
	switch {
	case !f.asking:
	case len(f.open()) > 0:
		f.wait(e)
	default:
		f.asking = false
		if interrupted(f.status.State) {
			f.set(e, stateWorking, nil)
		}
	}
}

// wait says what the client is asked. What the request at hand answers is not said again.
func (f *fold) wait(e *sessionv1.Event) {
	open := f.open()
	if len(open) == 0 {
		return // the turn waits for another client's tool
	}
	f.asking = true
	f.history = append(f.history, f.question(open))
	rest := slices.DeleteFunc(open, func(a *ask) bool { return f.answered[a.key()] })
	if len(rest) == 0 {
		return
	}
	state := stateInputRequired
	for _, a := range rest {
		if a.Question.GetQuestion().GetUrl() != "" {
			state = stateAuthRequired
		}
	}
	m := f.question(rest)
	f.set(e, state, &m)
}

// question returns the message that asks.
func (f *fold) question(open []*ask) message {
	var parts []part
	for _, a := range open {
		parts = append(parts, a.parts()...)
	}
	return f.message(roleAgent, "ask-"+keyOf(open), parts...)
}

// keyOf names what is open within its task.
func keyOf(open []*ask) string {
	var all []string
	for _, a := range open {
		all = append(all, a.key())
	}
	return strings.Join(all, "+")
}

// key names what is asked within its task.
func (a *ask) key() string {
	if a.Question != nil {
		return a.Call + "/" + a.Question.GetQuestion().GetId()
	}
	return a.Call
}

var kinds = map[sessionv1.ApprovalKind]string{
	sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET: "budget", sessionv1.ApprovalKind_APPROVAL_KIND_PLAN: "plan",
}

// parts returns what is asked: for people, and for programs.
func (a *ask) parts() []part {
	if q := a.Question; q != nil {
		about := object{"call": a.Call, "question": q.GetQuestion().GetId(), "message": q.GetQuestion().GetMessage()}
		if s := q.GetQuestion().GetSchemaJson(); json.Valid([]byte(s)) {
			about["schema"] = json.RawMessage(s)
		}
		if items := q.GetQuestion().GetItems(); len(items) > 0 {
			about["items"] = itemsOf(items)
		}
		if u := q.GetQuestion().GetUrl(); u != "" {
			about["url"] = u
		}
		about["expireTime"] = stamp(q.GetExpireTime())
		return []part{textPart(a.describe()), dataPart(object{"question": trim(about)})}
	}
	p := a.Approval
	kind := kinds[p.GetKind()]
	if kind == "" {
		kind = "call"
	}
	about := object{"call": a.Call, "kind": kind, "tool": p.GetTool(), "rule": p.GetRule(), "message": p.GetMessage(), "expireTime": stamp(p.GetExpireTime())}
	if s := p.GetArgumentsJson(); json.Valid([]byte(s)) {
		about["arguments"] = json.RawMessage(s)
	}
	if len(p.GetSuggestedRules()) > 0 {
		about["suggestedRules"] = p.GetSuggestedRules()
	}
	return []part{textPart(a.describe()), dataPart(object{"approval": trim(about)})}
}

// trim leaves out what is empty.
func trim(o object) object {
	for k, v := range o {
		if v == "" {
			delete(o, k)
		}
	}
	return o
}

func itemsOf(items []*commonv1.QuestionItem) (all []object) {
	for _, i := range items {
		options := []string{}
		for _, o := range i.GetOptions() {
			options = append(options, o.GetLabel())
		}
		all = append(all, object{"question": i.GetQuestion(), "options": options, "multiple": i.GetMultiple()})
	}
	return all
}

// describe says what is asked, for people.
func (a *ask) describe() string {
	if q := a.Question.GetQuestion(); q != nil {
		if q.GetMessage() != "" {
			return q.GetMessage()
		}
		var all []string
		for _, i := range q.GetItems() {
			all = append(all, i.GetQuestion())
		}
		return strings.Join(all, "\n")
	}
	if m := a.Approval.GetMessage(); m != "" {
		return m
	}
	return "May the agent use " + a.Approval.GetTool() + "?"
}
