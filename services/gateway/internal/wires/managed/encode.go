package managed

import (
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Event is an event of the wire.
type Event struct {
	// Seq and Part are its place: the number of the event of our log that led to it, and which of that event's it is.
	Seq  int64
	Part int
	// Preview marks an event that streams alone have.
	Preview bool
	Body    map[string]any
}

// ID returns the event's id; previews have none.
func (e Event) ID() string { s, _ := e.Body["id"].(string); return s }

// Type returns the event's type.
func (e Event) Type() string { s, _ := e.Body["type"].(string); return s }

// Encoder turns the events of a session's log, from its beginning, into those of the wire. It is a pure function of
// them: every replica gives an event the same id, the same place and the same bytes.
//
// What a step says is held back until its message is committed, because a step that breaks off starts again.
type Encoder struct {
	custom map[string]bool // the names of the tools that the client runs
	hosted map[string]bool // the names of the tools that a worker runs

	at     *sessionv1.Event
	out    []Event
	queued map[string]bool // turns
	asked  map[string][]any
	active string
	calls  map[string]*call
	step   step

	questions []*question // of the active turn, without an answer
}

// question is a question, which clients see as the use of the custom tool wire.AskTool.
type question struct {
	id   string // of that use
	of   *sessionv1.QuestionRequested
	told bool
}

// step is the model call that runs.
type step struct {
	span   string // the id of its start; empty: none runs
	blocks []*block
	calls  []*call
	stop   string
}

// block is a block of text or thinking that is not committed.
type block struct {
	index    int32
	seq      int64
	thinking bool
	text     strings.Builder
}

// call is a tool call of the active turn.
type call struct {
	id, tool, arguments string
	seq                 int64
	told, custom, ended bool
	hosted              bool // a worker runs it; custom, too
}

// NewEncoder returns an Encoder of a session whose client runs custom tools, and a worker others.
func NewEncoder(custom []string, hosted ...string) *Encoder {
	e := &Encoder{custom: map[string]bool{}, hosted: map[string]bool{}, queued: map[string]bool{}, asked: map[string][]any{}, calls: map[string]*call{}}
	for _, name := range custom {
		e.custom[name] = true
	}
	for _, name := range hosted {
		e.custom[name], e.hosted[name] = true, true
	}
	return e
}

// Ids of events that do not come from one event of the log alone.
func messageID(turn string) string      { return "sevt_u_" + wire.LastPart(turn) }
func interruptID(turn string) string    { return "sevt_i_" + wire.LastPart(turn) }
func callID(call string) string         { return "sevt_c_" + call }
func resultID(call string) string       { return "sevt_r_" + call }
func confirmationID(call string) string { return "sevt_a_" + call }

func seqID(seq int64) string { return fmt.Sprintf("sevt_%d", seq) }

func (b *block) id() string { return seqID(b.seq) }

func (b *block) kind() string {
	if b.thinking {
		return "agent.thinking"
	}
	return "agent.message"
}

// Add returns the events that an event of the log leads to.
func (e *Encoder) Add(ev *sessionv1.Event) []Event {
	e.at, e.out = ev, nil
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_SessionCreated:
		if text := b.SessionCreated.GetGreeting(); text != "" {
			e.tell("agent.message", seqID(ev.GetFirstSeq()), "content", texts(text))
		}
	case *sessionv1.Event_SessionCompacted:
		e.tell("agent.thread_context_compacted", seqID(ev.GetFirstSeq()))
	case *sessionv1.Event_Warning:
		e.warning(b.Warning)
	case *sessionv1.Event_McpServerChanged:
		e.server(b.McpServerChanged)
	default:
		if !e.turn(ev) && !e.output(ev) {
			e.tool(ev)
		}
	}
	return e.out
}

// Previews returns the previews with which a stream begins that opens now: of the blocks that are not finished.
func (e *Encoder) Previews() []Event {
	e.out = nil
	for _, b := range e.step.blocks {
		e.start(b)
		if b.text.Len() > 0 {
			e.delta(b, b.text.String())
		}
	}
	return e.out
}

// tell adds an event with pairs of names and values.
func (e *Encoder) tell(kind, id string, pairs ...any) {
	body := map[string]any{"type": kind, "id": id, "processed_at": stamp(e.at.GetTime().AsTime())}
	for i := 0; i+1 < len(pairs); i += 2 {
		body[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // names are constants
	}
	e.add(Event{Body: body})
}

func (e *Encoder) add(ev Event) {
	ev.Seq, ev.Part = e.at.GetSeq(), len(e.out)
	e.out = append(e.out, ev)
}

func (e *Encoder) start(b *block) {
	e.add(Event{Preview: true, Body: map[string]any{"type": "event_start", "event": map[string]any{"type": b.kind(), "id": b.id()}}})
}

func (e *Encoder) delta(b *block, text string) {
	if b.thinking {
		return // the wire shows that the agent thinks, not what
	}
	e.add(Event{Preview: true, Body: map[string]any{"type": "event_delta", "event_id": b.id(), "delta": map[string]any{
		"type": "content_delta", "index": 0, "content": map[string]any{"type": "text", "text": text},
	}}})
}

// stamp returns a time as the wire has it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// warning tells of what goes wrong while the turn goes on.
func (e *Encoder) warning(w *sessionv1.Warning) {
	kind := "model_request_failed_error"
	switch {
	case w.GetReason() != "MODEL_RETRY":
		return
	case strings.Contains(w.GetMessage(), "HTTP 529") || strings.Contains(w.GetMessage(), "overloaded"):
		kind = "model_overloaded_error"
	case strings.Contains(w.GetMessage(), "HTTP 429"):
		kind = "model_rate_limited_error"
	}
	e.fault(kind, w.GetMessage(), "retrying")
}

// fault tells of an error.
func (e *Encoder) fault(kind, message, retry string, pairs ...any) {
	what := map[string]any{"type": kind, "message": message, "retry_status": map[string]any{"type": retry}}
	for i := 0; i+1 < len(pairs); i += 2 {
		what[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // names are constants
	}
	e.tell("session.error", seqID(e.at.GetFirstSeq())+"_e", "error", what)
}
