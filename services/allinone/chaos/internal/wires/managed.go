package wires

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// managed is a client of Managed Agents. It comes back as the protocol advises: it opens the stream, lists the events
// and leaves out those that it has; or, with our addition, it asks for what follows its last event.
type managed struct {
	Target
	events []happened
	at     map[string]int // where an event is, by its id
	lastID string         // what the last event's `id:` was
}

// happened is an event of the protocol.
type happened struct {
	Type      string
	ID        string
	Content   []struct{ Text string }
	Name      string
	Server    string          `json:"mcp_server_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	McpUseID  string          `json:"mcp_tool_use_id"`
}

func (m *managed) path() string {
	return "/anthropic/v1/sessions/" + strings.TrimPrefix(m.Session, "sessions/") + "/events"
}

// Follow implements Follower.
func (m *managed) Follow(ctx context.Context, other bool) error {
	headers := map[string]string{"Accept": "text/event-stream"}
	if other && m.lastID != "" {
		headers["Last-Event-ID"] = m.lastID
	}
	resp, err := m.get(ctx, m.path()+"/stream", headers)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if headers["Last-Event-ID"] == "" {
		if err := m.list(ctx); err != nil {
			return err
		}
	}
	return frames(resp.Body, func(f frame) (bool, error) {
		var e happened
		if err := json.Unmarshal(f.data, &e); err != nil {
			return false, err
		}
		if f.id != "" {
			m.lastID = f.id
		}
		m.add(e)
		return e.Type != "session.deleted", nil
	})
}

// add takes an event. One that is known is told again when more is known of it.
func (m *managed) add(e happened) {
	if e.ID == "" {
		return // a preview
	}
	if i, ok := m.at[e.ID]; ok {
		m.events[i] = e
		return
	}
	m.at[e.ID] = len(m.events)
	m.events = append(m.events, e)
}

// list reads the events that are kept.
func (m *managed) list(ctx context.Context) error {
	for page := ""; ; {
		var got struct {
			Data []happened
			Next *string `json:"next_page"`
		}
		query := url.Values{"order": {"asc"}}
		if page != "" {
			query.Set("page", page)
		}
		if err := m.object(ctx, m.path()+"?"+query.Encode(), &got, nil); err != nil {
			return err
		}
		for _, e := range got.Data {
			m.add(e)
		}
		if got.Next == nil {
			return nil
		}
		if page = *got.Next; page == "" {
			return fmt.Errorf("the list of the events of %s has an empty cursor", m.Session)
		}
	}
}

// End implements Follower.
func (m *managed) End(ctx context.Context, _ int64) ([]record.Shown, error) {
	if err := m.list(ctx); err != nil {
		return nil, err
	}
	var shown record.Shown
	for _, e := range m.events {
		text := make([]string, 0, len(e.Content))
		for _, c := range e.Content {
			text = append(text, c.Text)
		}
		result := strings.Join(text, "\n")
		switch e.Type {
		case "agent.message":
			shown.Text += result
		case "agent.tool_use":
			call := shown.Call(ours(e.ID))
			call.Tool = e.Name
			call.Argue(string(e.Input))
		case "agent.mcp_tool_use":
			call := shown.Call(ours(e.ID))
			call.Tool = "mcp__" + e.Server + "__" + e.Name
			call.Argue(string(e.Input))
		case "agent.tool_result":
			shown.Call(ours(e.ToolUseID)).Result = &result
		case "agent.mcp_tool_result":
			shown.Call(ours(e.McpUseID)).Result = &result
		}
	}
	return []record.Shown{shown}, nil
}

// ours returns the id of a call.
func ours(id string) string { return strings.TrimPrefix(id, "sevt_c_") }
