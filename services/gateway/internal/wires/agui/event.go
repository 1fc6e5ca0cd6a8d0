package agui

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// event is one event of the protocol. Members without a value are left out, because the protocol knows no null there.
type event map[string]any

// position is the place of an event of the protocol in a log: the number of the log's event, and which of its events of
// the protocol it is, counted from 1. Part 0 is the last of them.
type position struct {
	seq  int64
	part int
}

// id returns what SSE has as the id of an event: only the last event of a number has the number itself.
func (p position) id() string {
	if p.part == 0 {
		return strconv.FormatInt(p.seq, 10)
	}
	return fmt.Sprintf("%d.%d", p.seq, p.part)
}

// appendEvents appends the events of one event of the log as server-sent events, after those that the client has.
func appendEvents(dst []byte, seq int64, all []event, after position) ([]byte, error) {
	for i, e := range all {
		p := position{seq, i + 1}
		if seq < after.seq || seq == after.seq && p.part <= after.part {
			continue
		}
		if i == len(all)-1 {
			p.part = 0
		}
		b, err := json.Marshal(e)
		if err != nil {
			return dst, err
		}
		dst = fmt.Appendf(dst, "id: %s\ndata: %s\n\n", p.id(), b)
	}
	return dst, nil
}

// runError returns the event of a run that failed.
func runError(code, message string) event {
	e := event{"type": "RUN_ERROR", "message": message}
	if code != "" {
		e["code"] = code
	}
	return e
}

// message is a message of the protocol, as snapshots have it.
type message struct {
	ID            string      `json:"id"`
	Role          string      `json:"role"`
	Content       any         `json:"content,omitempty"`
	ToolCalls     []*toolCall `json:"toolCalls,omitempty"`
	ToolCallID    string      `json:"toolCallId,omitempty"`
	SubagentRunID string      `json:"subagentRunId,omitempty"`
}

// toolCall is a call in an assistant's message.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// transcript has the messages of a run, as a client's reducer has them.
type transcript struct{ messages []*message }

// at returns the message with an id, which is made if there is none.
func (t *transcript) at(id, role, owner string) *message {
	for i := len(t.messages) - 1; i >= 0; i-- {
		if t.messages[i].ID == id {
			return t.messages[i]
		}
	}
	m := &message{ID: id, Role: role, SubagentRunID: owner}
	t.messages = append(t.messages, m)
	return m
}

// add appends to the text of a message.
func (t *transcript) add(id, role, owner, text string) {
	m := t.at(id, role, owner)
	s, _ := m.Content.(string)
	m.Content = s + text
}

// call returns a call of a message, which is made if there is none.
func (t *transcript) call(parent, owner, id, name string) *toolCall {
	m := t.at(parent, "assistant", owner)
	for _, c := range m.ToolCalls {
		if c.ID == id {
			return c
		}
	}
	c := &toolCall{ID: id, Type: "function"}
	c.Function.Name = name
	m.ToolCalls = append(m.ToolCalls, c)
	return c
}

// drop removes messages.
func (t *transcript) drop(void func(id string) bool) {
	kept := t.messages[:0]
	for _, m := range t.messages {
		if !void(m.ID) {
			kept = append(kept, m)
		}
	}
	t.messages = kept
}

// snapshot returns the event that makes a client's messages those before the run and those of the run.
func (t *transcript) snapshot(before []json.RawMessage) event {
	all := make([]any, 0, len(before)+len(t.messages))
	for _, m := range before {
		all = append(all, m)
	}
	for _, m := range t.messages {
		if m.Content == nil && m.Role != "assistant" {
			m.Content = ""
		}
		all = append(all, m)
	}
	return event{"type": "MESSAGES_SNAPSHOT", "messages": all}
}
