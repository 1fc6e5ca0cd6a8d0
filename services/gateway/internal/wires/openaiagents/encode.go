package openaiagents

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Event is an event of the wire.
type Event struct {
	// Seq and Part are its place: the number of the event of our log that led to it, and which of that event's it is.
	Seq  int64
	Part int
	// Text is how many bytes of its item a client has after it, if it is a delta: deltas of the log may be merged later.
	Text int
	Body map[string]any
}

// Type returns the event's type.
func (e Event) Type() string { s, _ := e.Body["type"].(string); return s }

func (e Event) place() place { return place{e.Seq, e.Part, e.Text} }

// Encoder turns the events of a session's log, from its beginning, into those of the wire. It is a pure function of
// them and of the session as it was made: every replica gives an event the same id, the same place and the same bytes.
type Encoder struct {
	base          map[string]any // the session, without what the log says
	session, name string         // its id on the wire, and its agent's
	client        map[string]bool
	schema        bool // its agent answers with output that has a schema: that is its final answer, and no text is

	at      *sessionv1.Event
	out     []Event
	status  string
	actions []any
	error   any
	total   *sessionv1.Usage
	queued  map[string]*sessionv1.Turn
	said    map[string][]any
	steered map[string]bool
	active  *sessionv1.Turn
	calls   map[string]*call
	asked   asked
	step    step
	index   int // of the next item of the turn
	void    [][2]int64
}

// step is the model call that runs.
type step struct {
	blocks []*block
	calls  []string
}

// block is a block of text or thinking whose item is not done.
type block struct {
	number   int32
	seq      int64
	index    int
	thinking bool
	finished bool
	text     strings.Builder
}

// call is a tool call of the active turn.
type call struct {
	id, tool, arguments string
	seq                 int64
	index, sent         int
	client              bool
	output              strings.Builder
	told, done          bool
	subagent            map[string]any // that it has begun
}

// asked is what the active turn has asked.
type asked struct {
	approvals map[string]*sessionv1.ApprovalRequested // by call
	questions []*question                             // without an answer
}

// question is a question, which clients see as a call of wire.AskTool.
type question struct {
	of *sessionv1.QuestionRequested
	as *call
}

// NewEncoder returns an Encoder of a session, as sessionJSON returns it, whose client runs these tools.
func NewEncoder(session map[string]any, client []string) *Encoder {
	e := &Encoder{
		base: session, status: statusIdle, actions: []any{}, queued: map[string]*sessionv1.Turn{}, said: map[string][]any{}, steered: map[string]bool{},
		calls: map[string]*call{}, client: map[string]bool{},
	}
	e.session, _ = session["id"].(string)
	if agent, ok := session["agent"].(map[string]any); ok {
		e.name, _ = agent["id"].(string)
		e.schema = hasSchema(agent["text"])
	}
	for _, name := range client {
		e.client[name] = true
	}
	e.asked.approvals = map[string]*sessionv1.ApprovalRequested{}
	return e
}

// hasSchema reports whether an agent's text has a JSON Schema.
func hasSchema(text any) bool {
	switch text := text.(type) {
	case textConfig: // as it is made
		return text.Format.Type == "json_schema"
	case map[string]any: // as it is kept
		format, _ := text["format"].(map[string]any)
		return format["type"] == "json_schema"
	}
	return false
}

// What a session does.
const (
	statusIdle     = "idle"
	statusRunning  = "in_progress"
	statusWaiting  = "requires_action"
	statusFailed   = "failed"
	eventPrefix    = "agent.session."
	ofTurn         = eventPrefix + "turn."
	itemAdded      = ofTurn + "item.added"
	itemDone       = ofTurn + "item.done"
	outputOfACall  = "agent.output.command_execution_output.delta"
	inProgress     = "in_progress"
	completed      = "completed"
	incomplete     = "incomplete"
	failed         = "failed"
	thinkingPart   = ofTurn + "reasoning_summary_part."
	thinkingText   = ofTurn + "reasoning_summary_text."
	contentPart    = ofTurn + "content_part."
	outputText     = ofTurn + "output_text."
	kindMessage    = "message"
	kindReasoning  = "reasoning"
	kindFunction   = "function_call"
	kindCommand    = "command_execution"
	kindMCP        = "mcp_call"
	ownServer      = "fairlead" // the server_label of tools of ours
	approvalPrefix = "mcpr_"
)

// Ids of items.
func messageID(turn string) string { return "msg_u_" + wire.LastPart(turn) }
func callItem(call string) string  { return "call_" + call }
func outputItem(call string) string {
	return "out_" + call
}

func (b *block) id() string {
	if b.thinking {
		return fmt.Sprintf("rs_%d", b.seq)
	}
	return fmt.Sprintf("msg_%d", b.seq)
}

// Add returns the events that an event of the log leads to.
func (e *Encoder) Add(ev *sessionv1.Event) []Event {
	e.at, e.out = ev, nil
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_SessionCreated:
		e.snapshot("created")
		if text := b.SessionCreated.GetGreeting(); text != "" {
			e.greeting(text)
		}
	case *sessionv1.Event_SessionRewound:
		e.void = append(e.void, [2]int64{b.SessionRewound.GetVoidFirstSeq(), b.SessionRewound.GetVoidLastSeq()})
	case *sessionv1.Event_Warning:
		e.fault("warning", b.Warning.GetReason(), b.Warning.GetMessage())
	case *sessionv1.Event_Error:
		e.fault("server_error", b.Error.GetReason(), b.Error.GetMessage())
	case *sessionv1.Event_SubagentStarted, *sessionv1.Event_SubagentFinished:
		e.subagent(ev)
	default:
		if !e.turn(ev) && !e.output(ev) {
			e.tool(ev)
		}
	}
	return e.out
}

// Now returns the session as it is after the events so far, with which a stream begins.
func (e *Encoder) Now() map[string]any {
	out := e.stated()
	return map[string]any{"type": eventPrefix + e.status, "session": out, "event_id": fmt.Sprintf("evt_%d_now", e.at.GetSeq())}
}

// add adds an event with pairs of names and values.
func (e *Encoder) add(kind string, pairs ...any) map[string]any {
	body := map[string]any{"type": kind, "event_id": fmt.Sprintf("evt_%d_%d", e.at.GetSeq(), len(e.out))}
	for i := 0; i+1 < len(pairs); i += 2 {
		body[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // names are constants
	}
	e.out = append(e.out, Event{Seq: e.at.GetSeq(), Part: len(e.out), Body: body})
	return body
}

// inTurn adds an event of the active turn.
func (e *Encoder) inTurn(kind string, pairs ...any) map[string]any {
	body := e.add(kind, pairs...)
	body["session_id"], body["turn_id"] = e.session, wire.LastPart(e.active.GetName())
	return body
}

// reached says how much of its item a client has with the last event, a delta.
func (e *Encoder) reached(bytes int) { e.out[len(e.out)-1].Text = bytes }

// stated returns the session as it is now.
func (e *Encoder) stated() map[string]any {
	out := maps.Clone(e.base)
	out["status"], out["required_actions"], out["error"] = e.status, e.actions, e.error
	out["last_active_at"] = e.at.GetTime().GetSeconds()
	out["usage"] = nil
	if e.total != nil {
		out["usage"] = usageJSON(e.total)
	}
	if limit, ok := out["spend_control"].(map[string]any); ok {
		out["spend_control"] = map[string]any{"limit": limit["limit"], "consumed": cents(e.total.GetCostNanoUsd())}
	}
	return out
}

// snapshot tells of a session's new state, or of its creation.
func (e *Encoder) snapshot(what string) {
	if what != "created" {
		e.status = what
	}
	e.add(eventPrefix+what, "session", e.stated())
}

// fault tells of something that went wrong.
func (e *Encoder) fault(kind, code, message string) {
	e.add("error", "session_id", e.session, "error", map[string]any{"type": kind, "code": strings.ToLower(code), "message": message, "param": nil})
}

// usageJSON returns usage as the wire has it: what was read from a cache is part of the input.
func usageJSON(u *sessionv1.Usage) map[string]any {
	in := u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens()
	return map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": u.GetCacheReadTokens()},
		"output_tokens": u.GetOutputTokens(), "output_tokens_details": map[string]any{"reasoning_tokens": u.GetThinkingTokens()},
		"total_tokens": in + u.GetOutputTokens(),
	}
}

// cents returns billionths of a dollar in cents.
func cents(nano int64) json.Number {
	return json.Number(strconv.FormatFloat(float64(nano)/nanoPerCent, 'f', -1, 64))
}

const nanoPerCent = 10_000_000
