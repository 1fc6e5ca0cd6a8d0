package aisdk

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// uiMessage is a message as applications keep it.
type uiMessage struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parts    []*uiPart       `json:"parts"`
}

// uiPart is a part of a uiMessage.
type uiPart struct {
	Type       string          `json:"type"`
	Text       *string         `json:"text,omitempty"`
	State      string          `json:"state,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  *string         `json:"errorText,omitempty"`
	Approval   *uiApproval     `json:"approval,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	URL        string          `json:"url,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	ID         string          `json:"id,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`

	said strings.Builder // the text so far
}

// uiApproval is what a person is asked about a call, and the answer.
type uiApproval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
}

// add adds a chunk to a message, as clients do.
func (m *uiMessage) add(c chunk) {
	switch c.Type {
	case "start":
		m.ID = c.MessageID
		m.metadata(c.MessageMetadata)
	case "finish", "message-metadata":
		m.metadata(c.MessageMetadata)
	case "start-step":
		m.Parts = append(m.Parts, &uiPart{Type: "step-start"})
	case "text-start", "reasoning-start":
		m.Parts = append(m.Parts, &uiPart{Type: c.Type[:len(c.Type)-len("-start")], Text: text(""), State: "streaming", ID: c.ID})
	case "text-delta", "reasoning-delta":
		if p := m.said(c.ID); p != nil {
			p.said.WriteString(*c.Delta)
			p.Text = text(p.said.String()) // no copy
		}
	case "text-end", "reasoning-end":
		if p := m.said(c.ID); p != nil {
			p.State = "done"
		}
	default:
		if c.Data != nil && !c.Transient {
			m.data(c)
		}
		if c.ToolCallID != "" {
			m.call(c)
		}
	}
}

// said returns the part that is being said under an id.
func (m *uiMessage) said(id string) *uiPart {
	for _, p := range slices.Backward(m.Parts) {
		if p.ID == id && p.State == "streaming" {
			return p
		}
	}
	return nil
}

// metadata merges, one level deep, as ours is flat.
func (m *uiMessage) metadata(more json.RawMessage) {
	if more == nil {
		return
	}
	all := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{m.Metadata, more} {
		_ = json.Unmarshal(raw, &all) // both are objects that this package made, or nothing
	}
	m.Metadata = value(all)
}

func (m *uiMessage) data(c chunk) {
	for _, p := range m.Parts {
		if p.Type == c.Type && p.ID == c.ID {
			p.Data = c.Data
			return
		}
	}
	m.Parts = append(m.Parts, &uiPart{Type: c.Type, ID: c.ID, Data: c.Data})
}

func (m *uiMessage) call(c chunk) {
	i := slices.IndexFunc(m.Parts, func(p *uiPart) bool { return p.ToolCallID == c.ToolCallID })
	if i < 0 {
		p := &uiPart{Type: "dynamic-tool", ToolName: c.ToolName, ToolCallID: c.ToolCallID}
		if !c.Dynamic {
			p.Type, p.ToolName = "tool-"+c.ToolName, ""
		}
		i, m.Parts = len(m.Parts), append(m.Parts, p)
	}
	p := m.Parts[i]
	answer := func(approved bool) {
		if p.Approval != nil {
			p.Approval.Approved = &approved
		}
	}
	switch c.Type {
	case "tool-input-start":
		p.State = "input-streaming"
	case "tool-input-available":
		p.State, p.Input = "input-available", c.Input
	case "tool-approval-request":
		p.State, p.Approval = "approval-requested", &uiApproval{ID: c.ApprovalID}
	case "tool-output-available":
		p.State, p.Output = "output-available", c.Output
		answer(true)
	case "tool-output-error":
		p.State, p.ErrorText = "output-error", c.ErrorText
		answer(true)
	case "tool-output-denied":
		p.State = "output-denied"
		answer(false)
	}
}

// shown returns the message without what is only for the building of it.
func (m *uiMessage) shown() uiMessage {
	for _, p := range m.Parts {
		if p.Text != nil {
			p.ID = ""
		}
		if p.Input == nil && p.ToolCallID != "" {
			p.Input = json.RawMessage("null")
		}
	}
	return *m
}

// history returns the messages of a log. running is the turn whose message a client gets by its stream: it is left
// out.
func history(events []*sessionv1.Event, running string, f Form) []uiMessage {
	events, gone := counted(events)
	all := []uiMessage{}
	turns, steered := map[string]*turn{}, map[string]bool{}
	at := map[string]int{} // where the answer of a turn is
	for _, e := range events {
		if s := e.GetTurnSteered(); s != nil {
			steered[e.GetTurn()] = true
		}
	}
	for _, e := range events {
		name := e.GetTurn()
		if c := e.GetSessionCreated(); c != nil && c.GetGreeting() != "" {
			all = append(all, uiMessage{ID: "greeting", Role: "assistant", Parts: []*uiPart{{Type: "text", Text: text(c.GetGreeting()), State: "done"}}})
		}
		if name == "" || gone[name] {
			continue
		}
		if q := e.GetTurnQueued(); q != nil {
			if q.GetCall() != nil {
				gone[name] = true // a call alone is no message
				continue
			}
			if len(q.GetContent()) > 0 {
				all = append(all, userMessage(wire.LastPart(name)+"-user", q.GetContent()))
			}
			turns[name] = newTurn(name, f)
		}
		t := turns[name]
		if t == nil || steered[name] || name == running {
			continue
		}
		if _, ok := at[name]; !ok {
			at[name] = len(all)
			all = append(all, uiMessage{Role: "assistant", Parts: []*uiPart{}})
		}
		chunks, _ := t.take(e)
		for _, c := range chunks {
			all[at[name]].add(c)
		}
	}
	for i := range all {
		all[i] = all[i].shown()
	}
	return all
}

// counted returns the events that count, and the turns that do not.
func counted(events []*sessionv1.Event) (kept []*sessionv1.Event, gone map[string]bool) {
	gone = map[string]bool{}
	void := map[int64]bool{} // events, by their number
	for i, e := range events {
		if r := e.GetStepRestarted(); r != nil {
			voidRange(events[:i], r.GetVoidFirstSeq(), r.GetVoidLastSeq(), e.GetTurn(), void, nil)
		}
		if r := e.GetSessionRewound(); r != nil {
			if r.GetUndoneTurn() != "" {
				gone[r.GetUndoneTurn()] = true
				for _, s := range events[:i] {
					if s.GetTurnSteered().GetInto() == r.GetUndoneTurn() {
						gone[s.GetTurn()] = true
					}
				}
				continue
			}
			voidRange(events[:i], r.GetVoidFirstSeq(), r.GetVoidLastSeq(), "", void, gone)
		}
	}
	for _, e := range events {
		if !void[e.GetSeq()] {
			kept = append(kept, e)
		}
	}
	return kept, gone
}

// voidRange marks the events of a range that no longer count: of one turn, or of all. Where a turn began in the range,
// all of it is gone.
func voidRange(events []*sessionv1.Event, first, last int64, turn string, void map[int64]bool, gone map[string]bool) {
	for _, e := range events {
		if e.GetSeq() < first || e.GetFirstSeq() > last || turn != "" && e.GetTurn() != turn {
			continue
		}
		switch e.GetBody().(type) {
		case *sessionv1.Event_TurnQueued, *sessionv1.Event_TurnStarted: // it may have waited since before the range
			if gone != nil {
				gone[e.GetTurn()] = true
			}
		case *sessionv1.Event_TurnWaiting, *sessionv1.Event_TurnResumed, *sessionv1.Event_TurnFinished, *sessionv1.Event_TurnSteered:
		default:
			void[e.GetSeq()] = true
		}
	}
}

// userMessage returns what a person said.
func userMessage(id string, content []*commonv1.Content) uiMessage {
	m := uiMessage{ID: id, Role: "user", Parts: []*uiPart{}}
	for _, c := range content {
		media := c.GetImage()
		if media == nil {
			media = c.GetDocument()
		}
		switch {
		case c.GetText() != nil:
			m.Parts = append(m.Parts, &uiPart{Type: "text", Text: text(c.GetText().GetText())})
		case media != nil:
			at := media.GetUri()
			if len(media.GetData()) > 0 {
				at = "data:" + media.GetMediaType() + ";base64," + base64.StdEncoding.EncodeToString(media.GetData())
			}
			m.Parts = append(m.Parts, &uiPart{Type: "file", MediaType: media.GetMediaType(), URL: at, Filename: media.GetTitle()})
		}
	}
	return m
}
