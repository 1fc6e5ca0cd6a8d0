package wires

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// agui is a page that shows a thread: it connects, gets the messages and the run that goes on, and after a break asks
// for the rest of that run.
type agui struct {
	Target
	run      string // that goes on; "" for none
	at       string // the id of its last event
	messages []*said
	whole    []record.Shown // runs whose end it saw, as their turns
}

// said is a message of the protocol.
type said struct {
	ID            string
	Role          string
	Content       json.RawMessage // text, or parts
	ToolCallID    string
	SubagentRunID string
	ToolCalls     []*made
	text          string
}

// made is a call of a message.
type made struct {
	ID       string
	Function struct{ Name, Arguments string }
}

// told is an event of the protocol.
type told struct {
	Type, RunID, MessageID, Role, SubagentRunID string
	ToolCallID, ToolCallName, ParentMessageID   string
	Content, Delta                              json.RawMessage // text, or of the state
	Messages                                    []*said
	Outcome                                     struct {
		Type               string
		PendingToolCallIDs []string
	}
}

// Follow implements Follower. The other way to come back is that of a page that is loaded again.
func (a *agui) Follow(ctx context.Context, other bool) error {
	query := url.Values{"threadId": {a.Session}}
	headers := map[string]string{"Accept": "text/event-stream"}
	if a.run != "" && a.at != "" && !other {
		query.Set("runId", a.run)
		headers["Last-Event-ID"] = a.at
	} else {
		a.run, a.at = "", ""
	}
	resp, err := a.get(ctx, "/v1/agui/"+a.Agent+"/events?"+query.Encode(), headers)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return frames(resp.Body, func(f frame) (bool, error) {
		var e told
		if err := json.Unmarshal(f.data, &e); err != nil {
			return false, err
		}
		a.at = f.id
		if e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR" {
			a.finish(e)
			return false, nil
		}
		a.add(e)
		return true, nil
	})
}

// finish takes the end of a run. One that waits for a person goes on as another run.
func (a *agui) finish(e told) {
	if a.run != "" && !strings.HasPrefix(a.run, "connect-") && e.Outcome.Type != "interrupt" && len(e.Outcome.PendingToolCallIDs) == 0 {
		run := a.run
		shown := a.shown(func(m *said) bool {
			return strings.HasPrefix(m.ID, run+"-") || m.Role == "tool" && strings.HasPrefix(m.ToolCallID, run)
		})
		shown.Turn, shown.Live = run, true
		a.whole = append(a.whole, shown)
	}
	a.run, a.at = "", ""
}

// message returns the message with an id, which is made if there is none.
func (a *agui) message(id, role, subagent string) *said {
	if i := slices.IndexFunc(a.messages, func(m *said) bool { return m.ID == id }); i >= 0 {
		return a.messages[i]
	}
	m := &said{ID: id, Role: role, SubagentRunID: subagent}
	a.messages = append(a.messages, m)
	return m
}

// call returns a call; nil if there is none.
func (a *agui) call(id string) *made {
	for _, m := range a.messages {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c
			}
		}
	}
	return nil
}

// add takes an event.
func (a *agui) add(e told) {
	switch e.Type {
	case "RUN_STARTED":
		a.run = e.RunID
	case "MESSAGES_SNAPSHOT":
		a.messages = e.Messages
		for _, m := range a.messages {
			m.text = plain(m.Content)
		}
	case "TEXT_MESSAGE_START":
		a.message(e.MessageID, e.Role, e.SubagentRunID)
	case "TEXT_MESSAGE_CONTENT":
		a.message(e.MessageID, "assistant", e.SubagentRunID).text += plain(e.Delta)
	case "TOOL_CALL_START":
		if a.call(e.ToolCallID) == nil {
			m := a.message(e.ParentMessageID, "assistant", e.SubagentRunID)
			c := &made{ID: e.ToolCallID}
			c.Function.Name = e.ToolCallName
			m.ToolCalls = append(m.ToolCalls, c)
		}
	case "TOOL_CALL_ARGS":
		if c := a.call(e.ToolCallID); c != nil {
			c.Function.Arguments += plain(e.Delta)
		}
	case "TOOL_CALL_RESULT":
		m := a.message(e.MessageID, "tool", e.SubagentRunID)
		m.ToolCallID, m.text = e.ToolCallID, plain(e.Content)
	}
}

// plain returns the text of a content.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // otherwise there is none
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String()
}

// shown returns what the agent itself says in some of the messages.
func (a *agui) shown(of func(*said) bool) record.Shown {
	var shown record.Shown
	for _, m := range a.messages {
		switch {
		case m.SubagentRunID != "" || !of(m):
		case m.Role == "assistant":
			shown.Text += m.text
			for _, c := range m.ToolCalls {
				call := shown.Call(c.ID)
				call.Tool = c.Function.Name
				call.Argue(c.Function.Arguments)
			}
		case m.Role == "tool":
			shown.Call(m.ToolCallID).Result = &m.text
		}
	}
	return shown
}

// End implements Follower.
func (a *agui) End(ctx context.Context, _ int64) ([]record.Shown, error) {
	if err := a.Follow(ctx, true); err != nil {
		return nil, err
	}
	return append(a.whole, a.shown(func(*said) bool { return true })), nil
}
