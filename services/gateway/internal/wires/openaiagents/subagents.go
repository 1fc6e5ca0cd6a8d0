package openaiagents

import (
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// subagent takes the events of subagents. A subagent is the session that a call of Task has begun.
func (e *Encoder) subagent(ev *sessionv1.Event) {
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_SubagentStarted:
		if c := e.calls[b.SubagentStarted.GetCallId()]; c != nil {
			c.subagent = subagentJSON(e.session, e.name, b.SubagentStarted.GetSession(), b.SubagentStarted.GetSubagent(), ev.GetTime().GetSeconds(), nil)
			e.tellSubagent("created", c.subagent)
			e.tellSubagent("active", c.subagent)
		}
	case *sessionv1.Event_SubagentFinished:
		if c := e.calls[b.SubagentFinished.GetCallId()]; c != nil && c.subagent != nil {
			closed := map[string]any{}
			for k, v := range c.subagent {
				closed[k] = v
			}
			closed["status"], closed["closed_at"] = "closed", ev.GetTime().GetSeconds()
			e.tellSubagent("closed", closed)
		}
	}
}

func (e *Encoder) tellSubagent(what string, subagent map[string]any) {
	e.add(eventPrefix+"subagent."+what, "session_id", e.session, "subagent", subagent)
}

// subagentJSON returns a subagent as the wire has it. closed is nil while it works.
func subagentJSON(session, parent, child, name string, opened int64, closed any) map[string]any {
	status := "active"
	if closed != nil {
		status = "closed"
	}
	return map[string]any{
		"id": wire.LastPart(child), "object": "agent.session.subagent", "session_id": session, "parent_agent_id": parent, "name": resource.Optional(name),
		"instructions": nil, "status": status, "opened_at": opened, "closed_at": closed,
	}
}

// subagentOf returns the subagent that a session is.
func subagentOf(x *sessionv1.Session, parent *sessionv1.Session) map[string]any {
	var closed any
	if x.GetState() == sessionv1.SessionState_SESSION_STATE_IDLE && x.GetFinishedTurns() > 0 {
		closed = x.GetUpdateTime().GetSeconds()
	}
	return subagentJSON(wire.LastPart(parent.GetName()), agentID(parent), x.GetName(), x.GetParentCall().GetSubagent(), x.GetCreateTime().GetSeconds(), closed)
}

// subagentsServer reads the subagents of sessions.
type subagentsServer struct{ *eventsServer }

func (s *subagentsServer) listSubagents(c *request) (any, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	parent, err := s.session(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var whole []entry
	req := &sessionv1.ListSessionsRequest{Parent: parent.GetName(), PageSize: 1000, OldestFirst: true}
	for x, err := range wire.All(ctx, s.wire.Sessions.ListSessions, req, (*sessionv1.ListSessionsResponse).GetSessions) {
		if err != nil {
			return nil, err
		}
		whole = append(whole, entry{wire.LastPart(x.GetName()), subagentOf(x, parent)})
	}
	return l.page(whole)
}

// child reads the subagent of a request, and the session that gave it work.
func (s *subagentsServer) child(c *request) (x, parent *sessionv1.Session, err error) {
	if parent, err = s.session(c); err != nil {
		return nil, nil, err
	}
	x, err = s.session(c.of(1))
	if err == nil && x.GetParentCall().GetSession() != parent.GetName() {
		err = resource.None("subagent", c.ID[1])
	}
	return x, parent, err
}

// of returns the request as one about what comes after a part of its path.
func (c *request) of(n int) *request {
	inner := *c
	inner.ID = slices.Clone(c.ID[n:])
	return &inner
}

func (s *subagentsServer) getSubagent(c *request) (any, error) {
	x, parent, err := s.child(c)
	if err != nil {
		return nil, err
	}
	return subagentOf(x, parent), nil
}

// inChild answers a request about a subagent as one about its session.
func (s *subagentsServer) inChild(answer handler) handler {
	return func(c *request) (any, error) {
		if _, _, err := s.child(c); err != nil {
			return nil, err
		}
		return answer(c.of(1))
	}
}

// turnOf makes the turns of an answer those of a subagent.
func (s *subagentsServer) turnOf(answer handler) handler {
	return func(c *request) (any, error) {
		got, err := s.inChild(answer)(c)
		m, _ := got.(map[string]any)
		turns, ok := m["data"].([]any)
		if !ok && m != nil {
			turns = []any{m}
		}
		for _, t := range turns {
			if turn, ok := t.(map[string]any); ok {
				turn["session_id"], turn["subagent_id"] = wire.LastPart(sessionName(c.ID[0])), c.ID[1]
			}
		}
		return got, err
	}
}
