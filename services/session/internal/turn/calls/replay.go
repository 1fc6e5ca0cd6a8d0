package calls

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// logged counts what the log has of a running call: bytes by stream, and progress messages.
// Tools repeats all of it, from the beginning, to a caller that attaches to the call.
type logged struct {
	bytes    map[string]int64
	progress int
}

func newLogged() *logged { return &logged{bytes: map[string]int64{}} }

// add counts an event of the log.
func (s *logged) add(e *sessionv1.Event, call string) {
	switch b := e.Body.(type) {
	case *sessionv1.Event_ToolCallOutputDelta:
		if d := b.ToolCallOutputDelta; d.CallId == call {
			s.bytes[d.Stream] += int64(len(d.Data))
		}
	case *sessionv1.Event_ToolCallProgress:
		if b.ToolCallProgress.CallId == call {
			s.progress++
		}
	}
}

// replay filters from a call's stream what the log already has. It serves one stream of
// CallTool.
type replay struct {
	log *logged // what the log has; grows. Nil: not known
	at  *logged // what the stream has brought so far
}

// unlogged returns the part of a piece that the log lacks, or nil.
func (r *replay) unlogged(call string, piece *toolsv1.CallToolResponse) *sessionv1.Event {
	if r.log == nil {
		return nil
	}
	var e *sessionv1.Event
	switch k := piece.Kind.(type) {
	case *toolsv1.CallToolResponse_Progress:
		if r.at.progress++; r.at.progress <= r.log.progress {
			return nil
		}
		e = &sessionv1.Event{Body: &sessionv1.Event_ToolCallProgress{ToolCallProgress: &sessionv1.ToolCallProgress{CallId: call, Message: k.Progress.Message}}}
	case *toolsv1.CallToolResponse_Output:
		stream, data := k.Output.Stream, k.Output.Data
		known := r.log.bytes[stream] - r.at.bytes[stream]
		r.at.bytes[stream] += int64(len(data))
		if known >= int64(len(data)) {
			return nil
		}
		e = &sessionv1.Event{Body: &sessionv1.Event_ToolCallOutputDelta{ToolCallOutputDelta: &sessionv1.ToolCallOutputDelta{
			CallId: call, Stream: stream, Data: data[max(known, 0):],
		}}}
	default:
		return nil
	}
	r.log.add(e, call)
	return e
}

// register records a call of which the log has nothing yet.
func (c *caller) register(call string) { c.logged.LoadOrStore(call, newLogged()) }

// replay returns the filter for a stream of a call that this caller or an earlier
// one began.
func (c *caller) replay(sc state.Scope, call string) *replay {
	if known, ok := c.logged.Load(call); ok {
		return &replay{log: known.(*logged), at: newLogged()}
	}
	known := readLogged(sc, call)
	if known != nil {
		c.logged.Store(call, known)
	}
	return &replay{log: known, at: newLogged()}
}

// pageBytes is about how much of the log is read at a time.
const pageBytes = 1 << 20

// readLogged reads from the log what it has of a call of the current step; nil if the
// log cannot be read.
func readLogged(sc state.Scope, call string) *logged {
	s := newLogged()
	run := sc.Active.Run
	after, last := max(run.Began, run.StartSeq, 1)-1, sc.Log.Seq()
	for after < last {
		page, err := sc.Store.ListEvents(sc, sc.Lease.Key, after, 0, pageBytes)
		if err != nil {
			// No more output is logged rather than the same output twice; the result has all of it.
			sc.Logger.WarnContext(sc, "cannot read how much of a call's output is logged; logging no more of it", "session", sc.Lease.Session, "call", call, "error", err)
			return nil
		}
		if len(page) == 0 {
			break // events that are not committed yet belong to other calls
		}
		for _, e := range page {
			s.add(e, call)
		}
		after = page[len(page)-1].Seq
	}
	return s
}
