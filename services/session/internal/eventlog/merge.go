package eventlog

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxDelta bounds a merged delta, in bytes.
const maxDelta = 64 << 10

// merge adds a later write of the same session to a pending one. Deltas are
// joined when the write is taken.
func merge(into *store.Write, w store.Write) {
	into.Events = append(into.Events, w.Events...)
	into.Messages = append(into.Messages, w.Messages...)
	for _, m := range w.Revised {
		revise(into, m)
	}
	if w.Head != nil {
		into.Head = w.Head
	}
	for _, t := range w.Turns {
		into.Turns = replaceTurn(into.Turns, t)
	}
	if w.ActiveTurn != nil {
		into.ActiveTurn = w.ActiveTurn
	}
	if w.AddUsage != nil {
		if into.AddUsage == nil {
			into.AddUsage = &sessionv1.Usage{}
		}
		AddUsage(into.AddUsage, w.AddUsage)
	}
	into.FinishedTurns += w.FinishedTurns
	into.Consume = append(into.Consume, w.Consume...)
	mergeWaits(into, w)
	into.StepCommitted = into.StepCommitted || w.StepCommitted
	into.Settle = append(into.Settle, w.Settle...)
	into.Reserve = append(into.Reserve, w.Reserve...)
	into.Jobs = append(into.Jobs, w.Jobs...)
	if w.Place != nil {
		into.Place = w.Place
	}
	into.Made = max(into.Made, w.Made) // an earlier place does not matter any more
	into.VoidExports = max(into.VoidExports, w.VoidExports)
	for _, gone := range w.DropCheckpoints { // the store drops before it adds
		into.Checkpoints = slices.DeleteFunc(into.Checkpoints, func(c *sessionv1.Checkpoint) bool { return strings.HasSuffix(c.GetName(), "/"+gone) })
	}
	into.DropCheckpoints = append(into.DropCheckpoints, w.DropCheckpoints...)
	into.Checkpoints = append(into.Checkpoints, w.Checkpoints...)
}

// revise adds a revision. It replaces a message that is still pending.
func revise(into *store.Write, m *sessionv1.Message) {
	for i := range into.Messages {
		if into.Messages[i].GetName() == m.GetName() {
			into.Messages[i] = m
			return
		}
	}
	into.Revised = append(into.Revised, m)
}

func replaceTurn(turns []*store.TurnRow, t *store.TurnRow) []*store.TurnRow {
	for i := range turns {
		if turns[i].ID == t.ID {
			turns[i] = t
			return turns
		}
	}
	return append(turns, t)
}

// mergeWaits merges the changes of waiting calls, in order for each call.
func mergeWaits(into *store.Write, w store.Write) {
	for _, id := range w.Waited {
		for i := range into.Wait {
			if into.Wait[i].CallID == id {
				into.Wait = append(into.Wait[:i], into.Wait[i+1:]...)
				break
			}
		}
		into.Waited = append(into.Waited, id)
	}
	into.Wait = append(into.Wait, w.Wait...)
}

// AddUsage adds b to a.
func AddUsage(a, b *sessionv1.Usage) {
	a.InputTokens = store.Sum(a.InputTokens, b.GetInputTokens())
	a.OutputTokens = store.Sum(a.OutputTokens, b.GetOutputTokens())
	a.CacheReadTokens = store.Sum(a.CacheReadTokens, b.GetCacheReadTokens())
	a.CacheWriteTokens = store.Sum(a.CacheWriteTokens, b.GetCacheWriteTokens())
	a.ThinkingTokens = store.Sum(a.ThinkingTokens, b.GetThinkingTokens())
	a.CostNanoUsd = store.Sum(a.CostNanoUsd, b.GetCostNanoUsd())
	a.Estimated = a.Estimated || b.GetEstimated()
}

// MergeDeltas joins adjacent deltas of the same block that follow each other in
// the log; the first then covers the numbers of all. A delta above the limit,
// in bytes of text, is not extended. It changes the events.
func MergeDeltas(events []*sessionv1.Event, bound int) []*sessionv1.Event {
	out := events[:0]
	for len(events) > 0 {
		n, size := run(events, bound)
		if n > 1 {
			join(events[:n], size)
		}
		out = append(out, events[0])
		events = events[n:]
	}
	return out
}

// run counts the events that the first one is joined with, including itself,
// and the bytes of their text.
func run(events []*sessionv1.Event, bound int) (n, size int) {
	first := events[0]
	what, text := deltaOf(first)
	if what == (subject{}) {
		return 1, 0
	}
	n, size = 1, text.len()
	for _, e := range events[1:] {
		other, text := deltaOf(e)
		if size > bound || other != what || e.Turn != first.Turn || e.Step != first.Step || e.FirstSeq != events[n-1].Seq+1 {
			break
		}
		n, size = n+1, size+text.len()
	}
	return n, size
}

// join makes one event of several, with one copy of their text.
func join(events []*sessionv1.Event, size int) {
	_, into := deltaOf(events[0])
	all := make([]byte, 0, size)
	for _, e := range events {
		_, text := deltaOf(e)
		all = text.appendTo(all)
	}
	into.set(all)
	events[0].Seq = events[len(events)-1].Seq
}

// content is the text or the bytes of a delta.
type content struct {
	text *string
	data *[]byte
}

func (c content) len() int {
	if c.text != nil {
		return len(*c.text)
	}
	return len(*c.data)
}

func (c content) appendTo(b []byte) []byte {
	if c.text != nil {
		return append(b, *c.text...)
	}
	return append(b, *c.data...)
}

func (c content) set(b []byte) {
	if c.text != nil {
		*c.text = string(b)
		return
	}
	*c.data = b
}

// subject identifies what a delta belongs to; the zero value is not a delta's.
type subject struct {
	kind   deltaKind
	block  int32
	call   string
	stream string
}

type deltaKind int8

const (
	textDelta deltaKind = iota + 1
	thinkingDelta
	argumentsDelta
	outputDelta
)

// deltaOf returns the subject of a delta, and its content.
func deltaOf(e *sessionv1.Event) (subject, content) {
	switch d := e.Body.(type) {
	case *sessionv1.Event_TextDelta:
		return subject{kind: textDelta, block: d.TextDelta.Block}, content{text: &d.TextDelta.Text}
	case *sessionv1.Event_ThinkingDelta:
		return subject{kind: thinkingDelta, block: d.ThinkingDelta.Block}, content{text: &d.ThinkingDelta.Text}
	case *sessionv1.Event_ToolCallArgumentsDelta:
		return subject{kind: argumentsDelta, call: d.ToolCallArgumentsDelta.CallId}, content{text: &d.ToolCallArgumentsDelta.Json}
	case *sessionv1.Event_ToolCallOutputDelta:
		o := d.ToolCallOutputDelta
		return subject{kind: outputDelta, call: o.CallId, stream: o.Stream}, content{data: &o.Data}
	}
	return subject{}, content{}
}

// sizeOf returns about the size of an event in memory, in bytes.
func sizeOf(e *sessionv1.Event) int {
	if what, text := deltaOf(e); what != (subject{}) {
		return 128 + text.len()
	}
	return proto.Size(e)
}
