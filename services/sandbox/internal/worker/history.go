package worker

import (
	"encoding/json"
	"time"
)

// event is what a worker reads of an event.
type event struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	ProcessedAt *time.Time      `json:"processed_at"`
	Thread      string          `json:"session_thread_id"`
	Name        string          `json:"name"`
	Input       json.RawMessage `json:"input"`
	Permission  string          `json:"evaluated_permission"`
	Use         string          `json:"tool_use_id"`
	Result      string          `json:"result"`
	StopReason  struct {
		Type string `json:"type"`
	} `json:"stop_reason"`
}

// decode reads an event. Of types that a worker does not read it takes the id and the type alone.
func decode(raw []byte) (event, error) {
	var head struct{ ID, Type string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return event{}, err
	}
	switch head.Type {
	case typeToolUse, typeConfirmation, typeResult, typeAgentResult, typeInterrupt, typeIdle, typeThreadOver:
		var e event
		err := json.Unmarshal(raw, &e)
		return e, err
	}
	return event{ID: head.ID, Type: head.Type}, nil
}

const (
	typeToolUse      = "agent.tool_use"
	typeConfirmation = "user.tool_confirmation"
	typeResult       = "user.tool_result"
	typeAgentResult  = "agent.tool_result"
	typeInterrupt    = "user.interrupt"
	typeIdle         = "session.status_idle"
	typeThreadOver   = "session.thread_status_terminated"
	typeTerminated   = "session.status_terminated"
	typeDeleted      = "session.deleted"
)

// history is what the events of a session mean for its worker. The events come in the log's order; an event that comes
// again changes nothing.
type history struct {
	seen     map[string]bool // by id, and once more when processed
	calls    []event
	settled  map[string]bool // by the id of the call: it is answered, denied or interrupted
	verdicts map[string]string
	cutoff   time.Time       // calls up to here were interrupted
	ended    map[string]bool // threads
	// idle is set while the last event says that the turn has ended.
	idle bool
	// over is the type of the event that ended the session.
	over string
}

func newHistory() *history {
	return &history{seen: map[string]bool{}, settled: map[string]bool{}, verdicts: map[string]string{}, ended: map[string]bool{}}
}

// apply takes an event in.
func (h *history) apply(e event) {
	key := e.ID
	if e.ProcessedAt != nil {
		key += "\x00processed" // an event of a client comes again when the session takes it up
	}
	if e.ID != "" && h.seen[key] {
		return
	}
	h.seen[key] = true
	switch e.Type {
	case typeToolUse:
		h.calls = append(h.calls, e)
		if e.Permission == "deny" || h.ended[e.Thread] || e.ProcessedAt != nil && !e.ProcessedAt.After(h.cutoff) {
			h.settled[e.ID] = true
		}
	case typeConfirmation:
		h.verdicts[e.Use] = e.Result
		if e.Result != "allow" {
			h.settled[e.Use] = true // the server answers it
		}
	case typeResult, typeAgentResult:
		h.settled[e.Use] = true
	case typeInterrupt:
		h.interrupt(e)
	case typeThreadOver:
		h.ended[e.Thread] = true
		for _, c := range h.calls {
			if c.Thread == e.Thread {
				h.settled[c.ID] = true
			}
		}
	case typeTerminated, typeDeleted:
		h.over = e.Type
	}
	switch e.Type {
	case typeConfirmation, typeInterrupt, typeThreadOver: // they come during a turn and after it
	default:
		h.idle = e.Type == typeIdle && e.StopReason.Type != "requires_action"
	}
}

// interrupt settles the calls that an interrupt ends: no result of theirs is accepted any more.
func (h *history) interrupt(e event) {
	if e.Thread == "" && e.ProcessedAt != nil && e.ProcessedAt.After(h.cutoff) {
		h.cutoff = *e.ProcessedAt // an interrupt can be listed before a call that it ends
	}
	for _, c := range h.calls {
		before := e.ProcessedAt == nil || c.ProcessedAt == nil || !c.ProcessedAt.After(*e.ProcessedAt)
		if before && (e.Thread == "" || e.Thread == c.Thread) {
			h.settled[c.ID] = true
		}
	}
}

// next returns the first call that is open and may be run; nil: there is none.
func (h *history) next(known func(name string) bool) *event {
	for i := range h.calls {
		c := &h.calls[i]
		if h.settled[c.ID] || !known(c.Name) {
			continue
		}
		// A permission of an unknown kind counts as ask.
		if c.Permission == "" || c.Permission == "allow" || h.verdicts[c.ID] == "allow" {
			return c
		}
	}
	return nil
}

// held reports whether a call waits for a person.
func (h *history) held(known func(name string) bool) bool {
	for _, c := range h.calls {
		if !h.settled[c.ID] && known(c.Name) {
			return true
		}
	}
	return false
}
