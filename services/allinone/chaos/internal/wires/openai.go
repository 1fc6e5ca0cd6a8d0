package wires

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// openai is a client of OpenAI Agents. It comes back after the last event that it has, or opens the stream anew; what it
// has missed then is in the list of items alone.
type openai struct {
	Target
	lastID string
	turns  map[string]*watched // that it has seen from their beginning
	whole  []record.Shown      // turns whose end it saw
}

// watched is a turn that a client sees happen.
type watched struct {
	items []*item
	text  map[string]string // the deltas, by item
}

// item is an item of the protocol.
type item struct {
	ID, Type, Role, Status string
	Turn                   string `json:"turn_id"`
	Content                []struct{ Text string }
	Command, Name          string
	Server                 string `json:"server_label"`
	Arguments              json.RawMessage
	Output, Error          *string
}

// state is an event of the protocol.
type state struct {
	Type, Delta string
	Turn        string `json:"turn_id"`
	ItemID      string `json:"item_id"`
	Item        *item
}

func (o *openai) path() string {
	return "/openai/v1/agents/sessions/" + strings.TrimPrefix(o.Session, "sessions/")
}

// Follow implements Follower.
func (o *openai) Follow(ctx context.Context, other bool) error {
	headers := map[string]string{"Accept": "text/event-stream"}
	if o.lastID != "" && !other {
		headers["Last-Event-ID"] = o.lastID
	} else {
		o.turns = map[string]*watched{}
	}
	resp, err := o.get(ctx, o.path()+"/events", headers)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return frames(resp.Body, func(f frame) (bool, error) {
		var e state
		if err := json.Unmarshal(f.data, &e); err != nil {
			return false, fmt.Errorf("an event that cannot be read: %w: %s", err, f.data)
		}
		o.add(e)
		o.lastID = f.id
		return true, nil
	})
}

// add takes an event.
func (o *openai) add(e state) {
	const ofTurn = "agent.session.turn."
	what, ok := strings.CutPrefix(e.Type, ofTurn)
	if ok && what == "created" {
		o.turns[e.Turn] = &watched{text: map[string]string{}}
	}
	t := o.turns[e.Turn]
	if !ok || t == nil {
		return
	}
	switch what {
	case "item.added", "item.done":
		t.put(e.Item)
	case "output_text.delta":
		t.text[e.ItemID] += e.Delta
	case "completed", "failed", "cancelled":
		shown := record.Shown{Turn: e.Turn, Live: true}
		for _, i := range t.items {
			if i.Status == "incomplete" && i.Type == "message" {
				continue // its step began again, or was interrupted
			}
			i.show(&shown, t.text[i.ID])
		}
		o.whole = append(o.whole, shown)
		delete(o.turns, e.Turn)
	}
}

// put adds an item, or replaces the one with its id.
func (t *watched) put(i *item) {
	for n, had := range t.items {
		if had.ID == i.ID {
			t.items[n] = i
			return
		}
	}
	t.items = append(t.items, i)
}

// text returns the text of a message as a list has it.
func (i *item) text() string {
	var text strings.Builder
	for _, c := range i.Content {
		text.WriteString(c.Text)
	}
	return text.String()
}

// show adds an item to what the client shows. text is that of a message.
func (i *item) show(to *record.Shown, text string) {
	id := strings.TrimPrefix(i.ID, "call_")
	switch i.Type {
	case "message":
		if i.Role == "assistant" {
			to.Text += text
		}
		return
	case "command_execution":
		arguments, _ := json.Marshal(map[string]string{"command": i.Command}) //nolint:errchkjson // a text
		call := to.Call(id)
		call.Tool, call.Some = "Bash", true
		call.Argue(string(arguments))
	case "mcp_call":
		call := to.Call(id)
		if call.Tool = i.Name; i.Server != "fairlead" {
			call.Tool = "mcp__" + i.Server + "__" + i.Name
		}
		call.Argue(string(i.Arguments))
	default:
		return
	}
	if i.Status != "in_progress" {
		if to.Call(id).Result = i.Output; i.Output == nil {
			to.Call(id).Result = i.Error
		}
	}
}

// End implements Follower.
func (o *openai) End(ctx context.Context, _ int64) ([]record.Shown, error) {
	turns := map[string]*record.Shown{}
	var order []string
	for after := ""; ; {
		var page struct {
			Data []*item
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		query := url.Values{"order": {"asc"}, "limit": {"100"}}
		if after != "" {
			query.Set("after", after)
		}
		if err := o.object(ctx, o.path()+"/items?"+query.Encode(), &page, nil); err != nil {
			return nil, err
		}
		for _, i := range page.Data {
			if turns[i.Turn] == nil {
				turns[i.Turn] = &record.Shown{Turn: i.Turn}
				order = append(order, i.Turn)
			}
			i.show(turns[i.Turn], i.text())
		}
		if !page.More {
			break
		}
		after = page.Last
	}
	all := o.whole
	for _, turn := range order {
		all = append(all, *turns[turn])
	}
	return all, nil
}
