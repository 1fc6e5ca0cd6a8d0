package eventlog

import (
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxDelta bounds a merged delta, in bytes.
const maxDelta = 64 << 10

// merge adds a later write of the same session to one that still waits.
func merge(into *store.Write, w store.Write) {
	for _, e := range w.Events {
		if n := len(into.Events); n > 0 && MergeDelta(into.Events[n-1], e, maxDelta) {
			continue
		}
		into.Events = append(into.Events, e)
	}
	into.Messages = append(into.Messages, w.Messages...)
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

// mergeWaits keeps the order of waiting and no longer waiting, call by call.
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
	a.InputTokens += b.GetInputTokens()
	a.OutputTokens += b.GetOutputTokens()
	a.CacheReadTokens += b.GetCacheReadTokens()
	a.CacheWriteTokens += b.GetCacheWriteTokens()
	a.ThinkingTokens += b.GetThinkingTokens()
	a.CostNanoUsd += b.GetCostNanoUsd()
}

// MergeDelta appends b to a if both are deltas of the same thing, b comes right
// behind a, and a is not above the bound, in bytes, already; a then covers the
// numbers of both.
func MergeDelta(a, b *sessionv1.Event, bound int) bool {
	if a.Turn != b.Turn || a.Step != b.Step || a.Seq+1 != b.FirstSeq || proto.Size(a) > bound {
		return false
	}
	switch x := a.Body.(type) {
	case *sessionv1.Event_TextDelta:
		y, ok := b.Body.(*sessionv1.Event_TextDelta)
		if !ok || x.TextDelta.Block != y.TextDelta.Block {
			return false
		}
		x.TextDelta.Text += y.TextDelta.Text
	case *sessionv1.Event_ThinkingDelta:
		y, ok := b.Body.(*sessionv1.Event_ThinkingDelta)
		if !ok || x.ThinkingDelta.Block != y.ThinkingDelta.Block {
			return false
		}
		x.ThinkingDelta.Text += y.ThinkingDelta.Text
	case *sessionv1.Event_ToolCallArgumentsDelta:
		y, ok := b.Body.(*sessionv1.Event_ToolCallArgumentsDelta)
		if !ok || x.ToolCallArgumentsDelta.CallId != y.ToolCallArgumentsDelta.CallId {
			return false
		}
		x.ToolCallArgumentsDelta.Json += y.ToolCallArgumentsDelta.Json
	case *sessionv1.Event_ToolCallOutputDelta:
		y, ok := b.Body.(*sessionv1.Event_ToolCallOutputDelta)
		if !ok || x.ToolCallOutputDelta.CallId != y.ToolCallOutputDelta.CallId || x.ToolCallOutputDelta.Stream != y.ToolCallOutputDelta.Stream {
			return false
		}
		x.ToolCallOutputDelta.Data = append(x.ToolCallOutputDelta.Data, y.ToolCallOutputDelta.Data...)
	default:
		return false
	}
	a.Seq = b.Seq
	return true
}
