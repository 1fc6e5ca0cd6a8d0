package agui

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Run says which part of a turn an answer shows. A turn is one run until it waits for a person or for the client; the
// answer begins another run of the same turn.
type Run struct {
	ThreadID, RunID, ParentRunID string
	// Turn is the turn's name, and Start the number in the session's log after which the run begins.
	Turn  string
	Start int64
	// After is what the client has of the answer.
	After position
	// Answered has what the request of the run answers: the calls, or call/question. True is a result of the client's.
	Answered map[string]bool
	// Messages are those of the client before the run. Snapshots repeat them; no model sees them.
	Messages []json.RawMessage
	// Whole makes the run begin with a snapshot of the messages.
	Whole bool
	// HasState is whether the client's state is an object, and HasOwn whether it has our part of it.
	HasState, HasOwn bool
	// Old is a client of the protocol before 1.0.
	Old bool
}

// Encoder makes the events of a run from those of a session's log. It is a pure function of both: it must get every
// event of the turn, those before the run included, and then any replica at any time writes the same. It implements
// wire.Encoder.
type Encoder struct {
	Run
	transcript transcript

	lanes map[string]*lane // by the call of a subagent; "" is the turn itself
	calls map[string]*call
	asks  []*ask
	model string
	usage usage
	todos []map[string]string
	prior []json.RawMessage // the client's messages before the run
	// begun and done are of the run.
	begun, done bool
	now         int64 // the number of the log's event
	out         []event
}

// lane is what one agent has open.
type lane struct {
	call            string // of a subagent
	session, turn   string // the session's name, and the turn's id
	step, attempt   int32
	lastText        string // the message that calls join
	openStep        string
	text, reasoning string // open messages
	announced       bool   // a subagent, in this run
	ended           bool
	name, about     string
	parent          *lane
}

// call is a tool call.
type call struct {
	id, tool, message string
	lane              *lane
	open              bool // between START and END
	done              bool
	arguments         string
	waited            int64 // the number of the last event by which the turn waits for the client's result; 0: none
}

// NewEncoder returns an Encoder.
func NewEncoder(r Run) *Encoder {
	e := &Encoder{Run: r, lanes: map[string]*lane{}, calls: map[string]*call{}, usage: usage{}}
	session, _, _ := strings.Cut(r.Turn, "/turns/")
	e.lanes[""] = &lane{session: session, turn: wire.LastPart(r.Turn)}
	answered := map[string]bool{}
	for k, v := range r.Answered {
		answered[k] = v
	}
	e.Answered = answered
	return e
}

// Event implements wire.Encoder.
func (e *Encoder) Event(dst []byte, from *sessionv1.Event) (next []byte, complete bool, err error) {
	all := e.events(from)
	dst, err = appendEvents(dst, from.GetSeq(), all, e.After)
	return dst, e.done, err
}

// events returns the events of the protocol for one of the log.
func (e *Encoder) events(from *sessionv1.Event) []event {
	e.out = nil
	if from.GetTurn() != e.Turn || e.done {
		return nil
	}
	e.now = from.GetSeq()
	if e.live() && !e.begun {
		e.begin()
	}
	if from.GetFirstSeq() <= e.After.seq && from.GetSeq() > e.After.seq && e.After.seq > e.Start {
		// The client has a part of it: deltas were merged meanwhile. It gets the messages before them, then all.
		e.emit(nil, e.transcript.snapshot(e.prior))
	}
	e.fold(e.lanes[""], from)
	return e.out
}

// live reports whether the event at hand is of the run.
func (e *Encoder) live() bool { return e.now > e.Start }

// emit adds an event of a lane, if it is of the run.
func (e *Encoder) emit(l *lane, ev event) {
	if !e.live() || e.done || l != nil && l.ended {
		return
	}
	if l != nil && l.call != "" {
		e.announce(l)
		ev["subagentRunId"] = l.call
	}
	e.out = append(e.out, ev)
}

// begin begins the run. What was open before it was closed with the run before.
func (e *Encoder) begin() {
	e.begun, e.prior = true, e.before()
	for _, l := range e.lanes {
		l.text, l.reasoning, l.openStep = "", "", ""
	}
	for _, c := range e.calls {
		c.open = false
	}
	ev := event{"type": "RUN_STARTED", "threadId": e.ThreadID, "runId": e.RunID, "protocolVersion": "1.0"}
	if e.ParentRunID != "" {
		ev["parentRunId"] = e.ParentRunID
	}
	e.emit(nil, ev)
	if e.Whole || len(e.prior) < len(e.Messages) {
		e.emit(nil, event{"type": "MESSAGES_SNAPSHOT", "messages": e.prior})
	}
	e.status("running")
}

// before returns the client's messages without those that the run itself will show: a client that asks for a run again
// has some of them.
func (e *Encoder) before() []json.RawMessage {
	kept := []json.RawMessage{}
	for _, m := range e.Messages {
		var h struct{ ID, SubagentRunID string }
		if json.Unmarshal(m, &h) != nil || e.makes(h.ID) || h.SubagentRunID != "" && e.calls[h.SubagentRunID] == nil {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// makes reports whether the run makes the message with an id of ours.
func (e *Encoder) makes(id string) bool {
	main := e.lanes[""]
	if c, ok := strings.CutSuffix(id, "-result"); ok && strings.HasPrefix(id, main.turn) {
		known := e.calls[c]
		return known == nil || !known.done
	}
	rest, ok := strings.CutPrefix(id, main.turn+"-")
	if !ok {
		return false
	}
	if seq, ok := strings.CutPrefix(rest, "note-"); ok {
		n, err := strconv.ParseInt(seq, 10, 64)
		return err == nil && n > e.Start
	}
	step, _, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(step, 10, 32)
	return err == nil && int32(n) > main.step
}

// status sets our part of the client's state.
func (e *Encoder) status(s string) {
	if !e.HasState {
		return
	}
	if e.HasOwn {
		e.emit(nil, event{"type": "STATE_DELTA", "delta": []any{event{"op": "add", "path": "/fairlead/status", "value": s}}})
		return
	}
	e.HasOwn = true
	e.emit(nil, event{"type": "STATE_DELTA", "delta": []any{event{"op": "add", "path": "/fairlead", "value": event{"status": s, "todos": listOf(e.todos)}}}})
}

// listOf returns the list of things to do.
func listOf(todos []map[string]string) []map[string]string {
	if todos == nil {
		return []map[string]string{}
	}
	return todos
}

// base begins the ids of the messages of a lane's step.
func (l *lane) base() string { return fmt.Sprintf("%s-%d-%d", l.turn, l.step, l.attempt) }

// Ended implements wire.Encoder.
func (e *Encoder) Ended(dst []byte, why error) []byte {
	ev := runError(apierr.Reason(why), apierr.Message(why))
	b, err := json.Marshal(ev)
	if err != nil {
		return dst
	}
	return fmt.Appendf(dst, "data: %s\n\n", b)
}
