package openaiagents

import (
	"encoding/json"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// output takes the events of model calls. It reports whether the event is one of them.
func (e *Encoder) output(ev *sessionv1.Event) bool {
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_StepStarted:
		e.step = step{}
	case *sessionv1.Event_StepRestarted:
		e.void = append(e.void, [2]int64{b.StepRestarted.GetVoidFirstSeq(), b.StepRestarted.GetVoidLastSeq()})
		e.drop()
	case *sessionv1.Event_StepFinished:
		e.commit()
	case *sessionv1.Event_TextStarted:
		e.begin(&block{number: b.TextStarted.GetBlock()})
	case *sessionv1.Event_TextDelta:
		e.more(e.open(b.TextDelta.GetBlock()), b.TextDelta.GetText())
	case *sessionv1.Event_TextFinished:
		e.end(e.open(b.TextFinished.GetBlock()))
	case *sessionv1.Event_ThinkingStarted:
		e.begin(&block{number: b.ThinkingStarted.GetBlock(), thinking: true})
	case *sessionv1.Event_ThinkingDelta:
		e.more(e.open(b.ThinkingDelta.GetBlock()), b.ThinkingDelta.GetText())
	case *sessionv1.Event_ThinkingFinished:
		e.end(e.open(b.ThinkingFinished.GetBlock()))
	default:
		return false
	}
	return true
}

// next returns the place of the next item of the turn.
func (e *Encoder) next() int {
	e.index++
	return e.index - 1
}

func outputPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text}
}

func summaryPart(text string) map[string]any {
	return map[string]any{"type": "summary_text", "text": text}
}

// item returns the item of a block.
func (b *block) item(turn, status string, phase any) map[string]any {
	item := map[string]any{"id": b.id(), "turn_id": turn, "status": status}
	parts := []any{}
	if status != inProgress {
		parts = append(parts, b.part())
	}
	if b.thinking {
		item["type"], item["summary"] = kindReasoning, parts
		return item
	}
	item["type"], item["role"], item["content"], item["phase"] = kindMessage, "assistant", parts, phase
	return item
}

func (b *block) part() map[string]any {
	if b.thinking {
		return summaryPart(b.text.String())
	}
	return outputPart(b.text.String())
}

// inBlock adds an event of a block.
func (e *Encoder) inBlock(b *block, message, thinking string, pairs ...any) {
	kind, place := message, "content_index"
	if b.thinking {
		kind, place = thinking, "summary_index"
	}
	body := e.inTurn(kind, pairs...)
	body["item_id"], body["output_index"], body[place] = b.id(), b.index, 0
}

func (e *Encoder) begin(b *block) {
	b.seq, b.index = e.at.GetFirstSeq(), e.next()
	e.step.blocks = append(e.step.blocks, b)
	e.inTurn(itemAdded, "output_index", b.index, "item", b.item(wire.LastPart(e.active.GetName()), inProgress, nil))
	empty := outputPart("")
	if b.thinking {
		empty = summaryPart("")
	}
	e.inBlock(b, contentPart+"added", thinkingPart+"added", "part", empty)
}

func (e *Encoder) more(b *block, text string) {
	if b == nil || text == "" {
		return
	}
	b.text.WriteString(text)
	e.inBlock(b, outputText+"delta", thinkingText+"delta", "delta", text)
	e.reached(b.text.Len())
}

func (e *Encoder) end(b *block) {
	if b == nil || b.finished {
		return
	}
	b.finished = true
	e.inBlock(b, outputText+"done", thinkingText+"done", "text", b.text.String())
	e.inBlock(b, contentPart+"done", thinkingPart+"done", "part", b.part())
	if b.thinking {
		e.out[len(e.out)-1].Body["status"] = nil
	}
}

func (e *Encoder) open(number int32) *block {
	for i := len(e.step.blocks) - 1; i >= 0; i-- {
		if b := e.step.blocks[i]; b.number == number {
			return b
		}
	}
	return nil
}

// commit tells that what the step has said is done: its message is committed. What comes before calls is commentary.
func (e *Encoder) commit() {
	phase := "final_answer"
	if len(e.step.calls) > 0 || e.schema {
		phase = "commentary"
	}
	for _, b := range e.step.blocks {
		e.end(b)
		e.inTurn(itemDone, "output_index", b.index, "item", b.item(wire.LastPart(e.active.GetName()), completed, phase))
	}
	e.step.blocks = nil
}

// drop tells that what the step has said is not part of the conversation, and that no call runs any more.
func (e *Encoder) drop() {
	for _, b := range e.step.blocks {
		e.inTurn(itemDone, "output_index", b.index, "item", b.item(wire.LastPart(e.active.GetName()), incomplete, nil))
	}
	for _, id := range e.step.calls {
		if c := e.calls[id]; c != nil && !c.told {
			delete(e.calls, id)
		}
	}
	e.step = step{}
}

// arguments returns the arguments of a call, as the model wrote them.
func arguments(text string) any {
	if json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.RawMessage(text)
	}
	return map[string]any{}
}

// plain returns content as text.
func plain(content []*commonv1.Content) string {
	var out []string
	for _, part := range input(content) {
		m, _ := part.(map[string]any)
		if text, ok := m["text"].(string); ok {
			out = append(out, text)
			continue
		}
		out = append(out, "(image)")
	}
	return strings.Join(out, "\n")
}
