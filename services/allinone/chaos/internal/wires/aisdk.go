package wires

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// aisdk is a page with useChat: when it is loaded it reads the messages and asks for the one that is being made, which
// it gets from its start.
type aisdk struct {
	Target
	live  *record.Shown  // the message of the stream
	whole []record.Shown // messages whose end it saw
}

// chunk is a chunk of a stream, or a part of a message.
type chunk struct {
	Type            string
	MessageID       string
	ID              string
	Text, Delta     string
	ToolCallID      string
	ToolName        string
	State           string
	Input, Output   json.RawMessage
	ErrorText       *string
	FinishReason    string
	MessageMetadata *struct{ Seq string }
}

func (a *aisdk) path() string { return "/v1/ai-sdk/chat/" + url.PathEscape(a.Session) }

// Follow implements Follower.
func (a *aisdk) Follow(ctx context.Context, _ bool) error {
	resp, err := a.get(ctx, a.path()+"/stream", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	ended := false
	return frames(resp.Body, func(f frame) (bool, error) {
		if string(f.data) == "[DONE]" {
			if ended {
				a.whole = append(a.whole, *a.live)
			}
			return false, nil
		}
		var c chunk
		if err := json.Unmarshal(f.data, &c); err != nil {
			return false, err
		}
		if c.MessageMetadata != nil && c.MessageMetadata.Seq != "" {
			ended = true
		}
		a.add(c)
		return true, nil
	})
}

// add adds a chunk to the message.
func (a *aisdk) add(c chunk) {
	switch c.Type {
	case "start":
		a.live = &record.Shown{Turn: c.MessageID, Live: true}
	case "text-delta":
		a.live.Text += c.Delta
	case "tool-input-start":
		a.live.Call(c.ToolCallID).Tool = c.ToolName
	case "tool-input-available":
		call := a.live.Call(c.ToolCallID)
		call.Tool = c.ToolName
		call.Argue(string(c.Input))
	case "tool-output-available", "tool-output-error":
		a.live.Call(c.ToolCallID).Result = result(c)
	}
}

// result returns the text of an output.
func result(c chunk) *string {
	if c.ErrorText != nil {
		return c.ErrorText
	}
	var text string
	if json.Unmarshal(c.Output, &text) != nil {
		text = string(c.Output)
	}
	return &text
}

// End implements Follower.
func (a *aisdk) End(ctx context.Context, _ int64) ([]record.Shown, error) {
	var messages []struct {
		ID, Role string
		Parts    []chunk
	}
	if err := a.object(ctx, a.path(), &messages, nil); err != nil {
		return nil, err
	}
	all := a.whole
	for _, m := range messages {
		if m.Role != "assistant" {
			continue
		}
		shown := record.Shown{Turn: m.ID}
		for _, p := range m.Parts {
			switch {
			case p.Type == "text":
				shown.Text += p.Text
			case p.Type == "dynamic-tool" || strings.HasPrefix(p.Type, "tool-"):
				call := shown.Call(p.ToolCallID)
				call.Tool = p.ToolName
				call.Argue(string(p.Input))
				if strings.HasPrefix(p.State, "output-") && p.State != "output-denied" {
					call.Result = result(p)
				}
			}
		}
		all = append(all, shown)
	}
	return all, nil
}
