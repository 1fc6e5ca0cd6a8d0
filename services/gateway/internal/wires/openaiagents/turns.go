package openaiagents

import (
	"math"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// history encodes the log of a session.
func (s *base) history(c *request, x *sessionv1.Session) (*Encoder, []Event, error) {
	log, err := s.wire.Events(c.R.Context(), x.GetName(), 0, math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	enc := encoderOf(x)
	var out []Event
	for _, ev := range log {
		out = append(out, enc.Add(ev)...)
	}
	return enc, out, nil
}

// item is an item of a session, as it was last.
type item struct {
	entry
	turn string
	seq  int64
}

// itemsOf returns the items of events, the oldest first. What a step has said that began again is left out.
func itemsOf(enc *Encoder, events []Event) (out []item) {
	at := map[string]int{}
	for _, e := range events {
		if kind := e.Type(); kind != itemAdded && kind != itemDone {
			continue
		}
		body, _ := e.Body["item"].(map[string]any)
		id, _ := body["id"].(string)
		if i, ok := at[id]; ok {
			out[i].body = body
			continue
		}
		turn, _ := body["turn_id"].(string)
		at[id] = len(out)
		out = append(out, item{entry{id, body}, turn, e.Seq})
	}
	for _, b := range enc.step.blocks { // they are told when they are done
		if i, ok := at[b.id()]; ok {
			out[i].body = b.item(out[i].turn, inProgress, nil)
			name := "content"
			if b.thinking {
				name = "summary"
			}
			out[i].body[name] = []any{b.part()}
		}
	}
	kept := out[:0]
	for _, it := range out {
		if !enc.voided(it.seq) {
			kept = append(kept, it)
		}
	}
	return kept
}

// voided reports whether an event of the log is void: its step began again, or the session was rewound.
func (e *Encoder) voided(seq int64) bool {
	for _, v := range e.void {
		if seq >= v[0] && seq <= v[1] {
			return true
		}
	}
	return false
}

func (s *eventsServer) items(c *request, turn string) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	enc, events, err := s.history(c, x)
	if err != nil {
		return nil, err
	}
	var whole []entry
	for _, it := range itemsOf(enc, events) {
		if turn == "" || it.turn == turn {
			whole = append(whole, it.entry)
		}
	}
	return l.page(whole)
}

func (s *eventsServer) listItems(c *request) (any, error) { return s.items(c, "") }

func (s *eventsServer) listTurnItems(c *request) (any, error) {
	if _, err := s.turn(c); err != nil {
		return nil, err
	}
	return s.items(c, c.ID[1])
}

// turn reads the turn of a request. A message that went into another turn is no turn of the wire.
func (s *eventsServer) turn(c *request) (*sessionv1.Turn, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	got, err := s.wire.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: sessionName(c.ID[0]) + "/turns/" + c.ID[1]})
	if err == nil && got.GetTurn().GetSteeredInto() != "" {
		return nil, resource.None("turn", c.ID[1])
	}
	return got.GetTurn(), err
}

// agentID returns the id of a session's agent on the wire.
func agentID(x *sessionv1.Session) string { return wire.LastPart(x.GetAgent()) }

func (s *eventsServer) getTurn(c *request) (any, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	t, err := s.turn(c)
	if err != nil {
		return nil, err
	}
	return turnJSON(wire.LastPart(x.GetName()), agentID(x), t), nil
}

func (s *eventsServer) listTurns(c *request) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var whole []entry
	req := &sessionv1.ListTurnsRequest{Parent: x.GetName(), PageSize: 1000}
	for t, err := range wire.All(ctx, s.wire.Sessions.ListTurns, req, (*sessionv1.ListTurnsResponse).GetTurns) {
		if err != nil {
			return nil, err
		}
		if t.GetSteeredInto() == "" {
			whole = append(whole, entry{wire.LastPart(t.GetName()), turnJSON(wire.LastPart(x.GetName()), agentID(x), t)})
		}
	}
	return l.page(whole)
}
