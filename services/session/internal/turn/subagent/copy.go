package subagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// pageEvents and pageBytes bound one read of a log.
	pageEvents = 500
	pageBytes  = 1 << 20
	// maxDelta is about the largest size of joined text, in bytes.
	maxDelta = 64 << 10
)

// follow copies the child's events until its turn has ended, and reads the turn. With leave it leaves the
// rest to another worker when this one is to stop.
func (s *Subagents) follow(sc state.Scope, c *child, leave bool) error {
	if err := s.announce(sc, c); err != nil {
		return err
	}
	live := s.Hub.Follow(c.key)
	defer live.Close()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-sc.Done():
			return context.Cause(sc)
		case <-live.C:
			live.Take()
			look.Reset(readAgain) // what comes meanwhile is read together
		case <-look.C:
			err := s.copyNew(sc, c)
			if err != nil {
				return err
			}
			if c.over {
				c.end, err = sc.Store.GetTurn(sc, c.key, state.LastSegment(c.turn))
				if err != nil {
					return fmt.Errorf("read the turn of a subagent: %w", err)
				}
				return nil
			}
			if leave && sc.Draining.Load() {
				return state.ErrHandOver // the successor goes on here
			}
			look.Reset(lookAgain)
		}
	}
}

// announce appends subagent.started, once.
func (s *Subagents) announce(sc state.Scope, c *child) error {
	if c.started {
		return nil
	}
	e := sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{
		CallId: c.call, Session: "sessions/" + c.key.Session, Turn: c.turn, Subagent: c.name, Description: describe(sc, c.call),
	}}})
	if err := sc.Append(store.Write{Events: []*sessionv1.Event{e}}); err != nil {
		return err
	}
	c.started = true
	return nil
}

// copyNew copies what the child's log has new, up to the end of the child's turn.
func (s *Subagents) copyNew(sc state.Scope, c *child) error {
	for !c.over {
		page, err := sc.Store.ListEvents(sc, c.key, c.read, pageEvents, pageBytes)
		if err != nil {
			return fmt.Errorf("read the log of a subagent: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		c.read = page[len(page)-1].Seq
		if i := slices.IndexFunc(page, c.ends); i >= 0 {
			c.over, page = true, page[:i+1]
		}
		if err := s.copyPage(sc, c, page); err != nil {
			return err
		}
	}
	return nil
}

// copyPage appends a page of the child's events to the parent's log. The end of a page may cut a block of text:
// it is kept back until the block goes on or another event follows.
func (s *Subagents) copyPage(sc state.Scope, c *child, page []*sessionv1.Event) error {
	var events []*sessionv1.Event
	if c.pending != nil {
		events, c.pending = append(events, c.pending), nil
	}
	for _, e := range page {
		if shown(e) {
			events = append(events, e)
		}
	}
	events = eventlog.MergeDeltas(events, maxDelta)
	if n := len(events); n > 0 && isText(events[n-1]) && mayGrow(events[n-1]) {
		events, c.pending = events[:n-1], events[n-1]
	}
	var write store.Write
	for _, e := range events {
		write.Events = append(write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{
			CallId: c.call, Event: e,
		}}}))
		// What the subagent achieves is progress of the turn that waits for it.
		write.StepCommitted = write.StepCommitted || e.GetStepFinished() != nil || e.GetSubagentFinished() != nil || e.GetTurnFinished() != nil
		c.copied = e.Seq
	}
	if len(write.Events) == 0 {
		return nil
	}
	return sc.Append(write)
}

// shown reports whether an event is copied. What is left out is in other events as a whole.
func shown(e *sessionv1.Event) bool {
	switch e.Body.(type) {
	case *sessionv1.Event_SessionCreated, *sessionv1.Event_ToolCallArgumentsDelta, *sessionv1.Event_ToolCallOutputDelta:
		return false
	default:
		return true
	}
}

func isText(e *sessionv1.Event) bool { return e.GetTextDelta() != nil || e.GetThinkingDelta() != nil }

// mayGrow reports whether more text may join an event.
func mayGrow(e *sessionv1.Event) bool {
	return len(e.GetTextDelta().GetText())+len(e.GetThinkingDelta().GetText()) <= maxDelta
}
