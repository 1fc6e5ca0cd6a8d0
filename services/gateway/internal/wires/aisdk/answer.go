package aisdk

import (
	"encoding/json"
	"errors"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// errRestarted cuts off an answer: the client has text that no longer counts, and no chunk takes it back. It asks for
// the stream again and gets the message from its start.
var errRestarted = errors.New("the step began anew after the client had a part of it")

// answer is the stream of one request: a wire.Encoder. What a step says that is in the log already is held back to
// the step's end, because a later event of the log may void it.
type answer struct {
	turn *turn
	// held is what is not sent yet; from mark on it is of the open step.
	held []chunk
	mark int
	told bool // the client has content of the open step
	// until is the last number of the log when the request came: up to there chunks are held.
	until int64
	// after, if it is not 0, is the last number whose chunks the client has: the answer continues its message.
	after int64
	// answered is what this request answers, until the log says so: a turn that waits for nothing else goes on.
	answered []string
	paused   bool
}

// Event implements wire.Encoder.
func (a *answer) Event(dst []byte, e *sessionv1.Event) (next []byte, complete bool, err error) {
	skipped := a.skip(e)
	chunks, restarted := a.turn.take(e)
	if restarted {
		if a.told {
			return dst, false, errRestarted
		}
		a.drop()
	}
	if !skipped {
		a.held = append(a.held, chunks...)
		a.settle(e)
	}
	if e.GetTurn() == a.turn.name && e.GetStepStarted() != nil {
		a.mark, a.told = len(a.held), false
	}
	if e.GetSeq() < a.until || a.doubtful(e) {
		return dst, false, nil
	}
	if a.waiting() && !skipped {
		a.held, a.paused = append(a.held, a.turn.pause()...), true
	}
	return a.send(dst)
}

// doubtful reports whether the open step may have died with the replica that made it: all that is known of it was in
// the log when the request came. It lives if the turn has a further event.
func (a *answer) doubtful(e *sessionv1.Event) bool {
	if a.told || a.turn.sure || !slices.ContainsFunc(a.held[a.mark:], chunk.content) {
		return false
	}
	if e.GetSeq() <= a.until || e.GetTurn() != a.turn.name {
		return true
	}
	return e.GetWarning() != nil || e.GetError() != nil
}

// skip reports whether the client has what an event says. With the first event that it has not, the answer begins.
func (a *answer) skip(e *sessionv1.Event) bool {
	if a.after == 0 {
		return false
	}
	if e.GetSeq() <= a.after || e.GetTurn() != a.turn.name {
		return true
	}
	a.after = 0
	a.held = append(a.held, chunk{Type: "start", MessageID: wire.LastPart(a.turn.name)})
	return false
}

// settle forgets an answer that has taken effect: what the turn waits for under its id from now on is something else.
func (a *answer) settle(e *sessionv1.Event) {
	var call string
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ApprovalResolved:
		call = b.ApprovalResolved.GetCallId()
	case *sessionv1.Event_QuestionResolved:
		call = b.QuestionResolved.GetCallId()
	case *sessionv1.Event_ToolCallFinished:
		call = b.ToolCallFinished.GetCallId()
	default:
		return
	}
	a.answered = slices.DeleteFunc(a.answered, func(id string) bool { return id == call })
	a.turn.waits = slices.DeleteFunc(slices.Clone(a.turn.waits), func(id string) bool { return id == call })
}

// waiting reports whether the turn waits for something that this request does not answer.
func (a *answer) waiting() bool {
	return slices.ContainsFunc(a.turn.waits, func(id string) bool { return !slices.Contains(a.answered, id) })
}

// drop forgets the content of the open step.
func (a *answer) drop() {
	kept := slices.DeleteFunc(slices.Clone(a.held[a.mark:]), chunk.content)
	a.held = append(a.held[:a.mark], kept...)
}

// send appends what is held.
func (a *answer) send(dst []byte) ([]byte, bool, error) {
	for i, c := range a.held {
		a.told = a.told || i >= a.mark && c.content()
		b, err := json.Marshal(c)
		if err != nil {
			return dst, false, err
		}
		dst = stream.AppendFrame(dst, "", "", b)
	}
	a.held, a.mark = a.held[:0], 0
	if a.paused || a.turn.ended {
		return append(dst, done...), true, nil
	}
	return dst, false, nil
}

// Ended implements wire.Encoder.
func (a *answer) Ended(dst []byte, why error) []byte {
	b, err := json.Marshal(chunk{Type: "error", ErrorText: text(wire.FaultOf(why).Message)})
	if err != nil {
		return dst
	}
	return append(stream.AppendFrame(dst, "", "", b), done...)
}
