package aisdk

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Form is how an application wants its messages.
type Form struct {
	// Typed leaves out that tools are dynamic: parts are of type tool-NAME.
	Typed bool
	// Version is the client's major version; 5 knows no approvals.
	Version int
}

// turn makes chunks of the events of one turn: one message. It is a pure function of the events.
type turn struct {
	Form
	name string // as sessions/{session}/turns/{turn}
	out  []chunk

	begun bool
	step  bool // a step is open
	parts []part
	calls map[string]*call
	order []string // of calls
	fresh []string // the calls of the attempt
	acted bool     // the last step has calls
	sure  bool     // the answer of the open step's model call is committed
	waits []string // what the turn waits for
	ended bool
}

// part is an open part of text or reasoning.
type part struct{ kind, id string }

// call is a tool call of the message.
type call struct {
	tool             string
	shown, asks, end bool // its arguments are complete; a person is asked; it has a result
}

func newTurn(name string, f Form) *turn { return &turn{Form: f, name: name, calls: map[string]*call{}} }

func (t *turn) emit(c chunk) { t.out = append(t.out, c) }

// take returns the chunks of an event. restarted reports that the content of the open step is void.
func (t *turn) take(e *sessionv1.Event) (chunks []chunk, restarted bool) {
	if e.GetTurn() != t.name || t.ended {
		return nil, false
	}
	t.out = nil
	t.begin()
	restarted = t.event(e)
	return t.out, restarted
}

func (t *turn) begin() {
	if t.begun {
		return
	}
	t.begun = true
	session, _, _ := strings.Cut(t.name, "/turns/")
	t.emit(chunk{Type: "start", MessageID: wire.LastPart(t.name), MessageMetadata: value(struct {
		Session string `json:"session"`
		Turn    string `json:"turn"`
	}{session, t.name})})
}

func (t *turn) event(e *sessionv1.Event) (restarted bool) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TurnQueued:
		t.status("queued")
	case *sessionv1.Event_TurnStarted:
		t.status("running")
	case *sessionv1.Event_TurnSteered:
		t.steered(b.TurnSteered.GetInto())
	case *sessionv1.Event_TurnWaiting:
		t.sure = true
		t.status("waiting")
		t.closeStep()
		t.waits = b.TurnWaiting.GetCallIds()
	case *sessionv1.Event_TurnResumed:
		t.waits = nil
		t.status("running")
	case *sessionv1.Event_TurnFinished:
		t.finished(e, b.TurnFinished)
	case *sessionv1.Event_ToolCallDecision:
		t.sure = true
	case *sessionv1.Event_StepStarted:
		t.fresh, t.sure = nil, false
		t.openStep()
	case *sessionv1.Event_StepRestarted:
		t.restart()
		return true
	case *sessionv1.Event_StepFinished:
		t.sure = true
		t.closeStep()
		t.data("usage", "usage", true, usageOf(b.StepFinished.GetUsage()))
	default:
		if !t.said(e) && !t.called(e) {
			t.extra(e)
		}
	}
	return false
}

// said takes an event of text or thinking.
func (t *turn) said(e *sessionv1.Event) bool {
	block := func(n int32) string {
		return strconv.Itoa(int(e.GetStep())) + "-" + strconv.Itoa(int(n))
	}
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TextStarted:
		t.open("text", block(b.TextStarted.GetBlock()))
	case *sessionv1.Event_TextDelta:
		t.delta("text", block(b.TextDelta.GetBlock()), b.TextDelta.GetText())
	case *sessionv1.Event_TextFinished:
		t.close(part{"text", block(b.TextFinished.GetBlock())})
	case *sessionv1.Event_ThinkingStarted:
		t.open("reasoning", block(b.ThinkingStarted.GetBlock()))
	case *sessionv1.Event_ThinkingDelta:
		t.delta("reasoning", block(b.ThinkingDelta.GetBlock()), b.ThinkingDelta.GetText())
	case *sessionv1.Event_ThinkingFinished:
		t.close(part{"reasoning", block(b.ThinkingFinished.GetBlock())})
	default:
		return false
	}
	return true
}

func (t *turn) open(kind, id string) {
	t.openStep()
	p := part{kind, id}
	if slices.Contains(t.parts, p) {
		return
	}
	t.parts = append(t.parts, p)
	t.emit(chunk{Type: kind + "-start", ID: id})
}

func (t *turn) delta(kind, id, more string) {
	t.open(kind, id)
	t.emit(chunk{Type: kind + "-delta", ID: id, Delta: text(more)})
}

func (t *turn) close(p part) {
	if i := slices.Index(t.parts, p); i >= 0 {
		t.parts = slices.Delete(t.parts, i, i+1)
		t.emit(chunk{Type: p.kind + "-end", ID: p.id})
	}
}

func (t *turn) openStep() {
	if !t.step {
		t.step, t.acted = true, false
		t.emit(chunk{Type: "start-step"})
	}
}

func (t *turn) closeStep() {
	for len(t.parts) > 0 {
		t.close(t.parts[0])
	}
	if t.step {
		t.step = false
		t.emit(chunk{Type: "finish-step"})
	}
}

// restart forgets what the attempt said. The step stays open for the next attempt.
func (t *turn) restart() {
	t.parts, t.acted = nil, false
	for _, id := range t.fresh {
		delete(t.calls, id)
		t.order = slices.DeleteFunc(t.order, func(o string) bool { return o == id })
	}
	t.fresh = nil
}

// steered ends the message of a turn whose words another turn answers.
func (t *turn) steered(into string) {
	t.data("steered", "steered", false, map[string]string{"into": into, "messageId": wire.LastPart(into)})
	t.ended, t.sure = true, true
	t.emit(chunk{Type: "finish", FinishReason: "stop"})
}

// finished ends the message. Its last step must not have calls alone: applications would ask again.
func (t *turn) finished(e *sessionv1.Event, f *sessionv1.TurnFinished) {
	state := strings.ToLower(strings.TrimPrefix(f.GetState().String(), "TURN_STATE_"))
	t.status(state)
	t.endCalls(f)
	t.closeStep()
	if t.acted {
		t.lastWords(f)
	}
	metadata := value(struct {
		Turn   string     `json:"turn"`
		State  string     `json:"state"`
		Reason string     `json:"reason,omitempty"`
		Error  string     `json:"error,omitempty"`
		Seq    string     `json:"seq"`
		Steps  int32      `json:"steps"`
		Usage  usageShown `json:"usage"`
		Output string     `json:"outputJson,omitempty"`
		took
	}{t.name, state, f.GetError().GetReason(), f.GetError().GetMessage(), strconv.FormatInt(e.GetSeq(), 10), f.GetSteps(), usageOf(f.GetUsage()), f.GetOutputJson(), tookOf(f)})
	t.ended, t.sure = true, true
	switch f.GetState() {
	case sessionv1.TurnState_TURN_STATE_FAILED:
		t.emit(chunk{Type: "message-metadata", MessageMetadata: metadata})
		t.emit(chunk{Type: "error", ErrorText: text(cmp.Or(f.GetError().GetMessage(), "The turn failed."))})
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		t.emit(chunk{Type: "message-metadata", MessageMetadata: metadata})
		t.emit(chunk{Type: "abort"})
	case sessionv1.TurnState_TURN_STATE_PARTIAL:
		t.emit(chunk{Type: "finish", FinishReason: "length", MessageMetadata: metadata})
	default:
		t.emit(chunk{Type: "finish", FinishReason: "stop", MessageMetadata: metadata})
	}
}

// lastWords adds a step of text.
func (t *turn) lastWords(f *sessionv1.TurnFinished) {
	words := cmp.Or(f.GetFinalText(), f.GetError().GetMessage(), "The turn has ended.")
	t.open("text", "end")
	t.emit(chunk{Type: "text-delta", ID: "end", Delta: text(words)})
	t.closeStep()
}

// pause ends the answer of a turn that waits: the client answers with another request.
func (t *turn) pause() []chunk {
	t.out = nil
	t.closeStep()
	t.emit(chunk{Type: "finish", FinishReason: "tool-calls"})
	return t.out
}

// took is what a turn, and its session so far, took.
type took struct {
	DurationMs int64  `json:"durationMs"`
	Model      string `json:"model,omitempty"`
	ToolErrors int32  `json:"toolErrors"`
	Session    struct {
		Turns int32      `json:"turns"`
		Usage usageShown `json:"usage"`
	} `json:"sessionTotals"`
}

func tookOf(f *sessionv1.TurnFinished) took {
	t := took{DurationMs: f.GetDurationMs(), Model: f.GetModel(), ToolErrors: f.GetToolErrors()}
	t.Session.Turns, t.Session.Usage = f.GetSessionTurns(), usageOf(f.GetSessionUsage())
	return t
}

// usageShown is usage as applications read it.
type usageShown struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ThinkingTokens   int64 `json:"thinkingTokens"`
	CostNanoUSD      int64 `json:"costNanoUsd"`
}

func usageOf(u *sessionv1.Usage) usageShown {
	return usageShown{u.GetInputTokens(), u.GetOutputTokens(), u.GetCacheReadTokens(), u.GetCacheWriteTokens(), u.GetThinkingTokens(), u.GetCostNanoUsd()}
}

func (t *turn) status(state string) {
	t.data("status", "status", true, map[string]string{"state": state})
}

// data adds a part of data. The same name and id update it; a passing one is told and not kept.
func (t *turn) data(name, id string, passing bool, data any) {
	t.emit(chunk{Type: "data-" + name, ID: id, Transient: passing, Data: value(data)})
}

// words returns content that is text alone.
func words(content []*commonv1.Content) (string, bool) {
	var all []string
	for _, c := range content {
		if c.GetText() == nil {
			return "", false
		}
		all = append(all, c.GetText().GetText())
	}
	return strings.Join(all, "\n"), true
}
