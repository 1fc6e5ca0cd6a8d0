package wire

import (
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// seen is what a reader of a log has had. Deltas may be merged while a reader is away: then one event also covers
// numbers that the reader has. seen takes what the reader had out of it.
type seen struct {
	last int64
	// deltas are the latest ones, without another event between them: only those can be merged with later ones.
	deltas []span
}

// span is a delta that the reader had.
type span struct {
	first int64
	size  int // of its text, in bytes
}

// fresh returns what is new in an event; nil if all of it is known.
func (s *seen) fresh(e *sessionv1.Event) *sessionv1.Event {
	if e == nil || e.GetSeq() <= s.last {
		return nil
	}
	if e.GetFirstSeq() <= s.last {
		e = s.rest(e)
	}
	s.last = e.GetSeq()
	if size := deltaSize(e); size < 0 {
		s.deltas = s.deltas[:0]
	} else {
		s.deltas = append(s.deltas, span{e.GetFirstSeq(), size})
	}
	return e
}

// rest returns the part of a merged delta that the reader has not had.
func (s *seen) rest(e *sessionv1.Event) *sessionv1.Event {
	had := 0
	for _, d := range s.deltas {
		if d.first >= e.GetFirstSeq() {
			had += d.size
		}
	}
	if had == 0 || had > deltaSize(e) {
		return e // it began before this reader did
	}
	e = proto.CloneOf(e)
	e.FirstSeq = s.last + 1
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TextDelta:
		b.TextDelta.Text = b.TextDelta.GetText()[had:]
	case *sessionv1.Event_ThinkingDelta:
		b.ThinkingDelta.Text = b.ThinkingDelta.GetText()[had:]
	case *sessionv1.Event_ToolCallArgumentsDelta:
		b.ToolCallArgumentsDelta.Json = b.ToolCallArgumentsDelta.GetJson()[had:]
	case *sessionv1.Event_ToolCallOutputDelta:
		b.ToolCallOutputDelta.Data = b.ToolCallOutputDelta.GetData()[had:]
	}
	return e
}

// deltaSize returns the size of a delta's text; -1 for another event.
func deltaSize(e *sessionv1.Event) int {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TextDelta:
		return len(b.TextDelta.GetText())
	case *sessionv1.Event_ThinkingDelta:
		return len(b.ThinkingDelta.GetText())
	case *sessionv1.Event_ToolCallArgumentsDelta:
		return len(b.ToolCallArgumentsDelta.GetJson())
	case *sessionv1.Event_ToolCallOutputDelta:
		return len(b.ToolCallOutputDelta.GetData())
	default:
		return -1
	}
}
