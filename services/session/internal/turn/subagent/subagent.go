// Package subagent gives parts of a turn's work to subagents.
//
// A subagent works in a session of its own, a child. Its id follows from the call of the tool Task, so a
// worker that takes over finds the child and never makes a second one. The store makes a child only for
// the holder of the parent's lease, so that none appears after the call was ended.
//
// While the child works, its events are copied into the parent's log. The last copied number is read from that
// log: a successor goes on behind it.
package subagent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// freeAgain is the wait before a call of the root that finds no free place looks again.
	freeAgain = 250 * time.Millisecond
	// readAgain is the least time between two reads of a child's log.
	readAgain = 100 * time.Millisecond
	// lookAgain is when a child's log is read without a wake, since one may be lost.
	lookAgain = time.Second
)

// Config is what all workers share.
type Config struct {
	Hub *hub.Hub
	// Find returns an agent of a tenant at its newest version.
	Find func(ctx context.Context, tenant, name string) (agent.Agent, error)
	// MaxParallel bounds the subagents that work at the same time below one root, and MaxDepth how deep they
	// are below it.
	MaxParallel, MaxDepth int
}

// Subagents has the children of one session. Concurrent calls use it.
type Subagents struct {
	Config

	mu       sync.Mutex
	children map[string]*child // by call
}

// New returns the subagents of a session that has just been loaded.
func New(c Config) *Subagents { return &Subagents{Config: c, children: map[string]*child{}} }

// child is the session of a subagent. The goroutine of its call uses it.
type child struct {
	call    string
	key     store.Key
	turn    string // its name
	name    string // the subagent's
	started bool   // the log has subagent.started
	copied  int64  // the last number of the child's log that was copied
	read    int64  // the last one that was read
	pending *sessionv1.Event
	over    bool            // the end of its turn was copied
	end     *sessionv1.Turn // nil: its turn has not ended, or that is not read yet
	lost    bool            // it could not be stopped in time; a job ends it
}

// Run gives the work of a call to a subagent, and waits for its end. tokens are those that the turn had left before the
// calls that run now. Its errors end the worker, unless the
// scope has ended.
func (s *Subagents) Run(sc state.Scope, u *sessionv1.ToolUse, arguments string, tokens int64) (*toolsv1.CallResult, error) {
	c, refusal, err := s.ensure(sc, u, arguments, tokens)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if err := s.follow(sc, c, true); err != nil {
		return nil, err
	}
	return resultOf(c.end), nil
}

// Stop ends the work of a call that may have begun, and waits until it has ended: from then on the
// subagent changes nothing. Without an answer in time it returns an error.
func (s *Subagents) Stop(sc state.Scope, u *sessionv1.ToolUse) error {
	c, err := s.find(sc, u)
	if err != nil || c == nil || c.end != nil {
		return err
	}
	if err := jobs.InterruptSubagent(sc, sc.Store, c.key, sc.Active.Run.User); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(sc, sc.PeerPatience)
	defer cancel()
	if err := s.follow(sc.With(ctx), c, false); err != nil {
		c.lost = true
		return err
	}
	return nil
}

// Finish returns the event of the end of a call's work, after all events of the child. It returns nil
// if no subagent has begun. It must be called once the call has its result.
func (s *Subagents) Finish(sc state.Scope, u *sessionv1.ToolUse) (*sessionv1.Event, error) {
	c, err := s.find(sc, u)
	if err != nil || c == nil {
		return nil, err
	}
	if c.end == nil && !c.lost { // an earlier worker has reported the result
		if err := s.follow(sc, c, false); err != nil {
			return nil, err
		}
	}
	t := c.end
	if c.lost {
		t = &sessionv1.Turn{}
	}
	usage := &sessionv1.Usage{}
	eventlog.AddUsage(usage, t.Usage)
	eventlog.AddUsage(usage, t.SubagentUsage)
	return sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_SubagentFinished{SubagentFinished: &sessionv1.SubagentFinished{
		CallId: u.CallId, Session: "sessions/" + c.key.Session, State: t.State, Error: t.Error, Usage: usage,
	}}}), nil
}

// find returns the child of a call, or nil if there is none.
func (s *Subagents) find(sc state.Scope, u *sessionv1.ToolUse) (*child, error) {
	s.mu.Lock()
	known := s.children[u.CallId]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	k := childKey(sc.Lease.Tenant, u.CallId)
	session, err := sc.Store.GetSession(sc, k)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // the call has not begun
	}
	if err != nil {
		return nil, fmt.Errorf("read the session of a subagent: %w", err)
	}
	return s.attach(sc, &child{call: u.CallId, key: k, turn: turnName(k), name: session.GetParentCall().GetSubagent()})
}

// attach reads from the parent's log how far the child's log is copied.
func (s *Subagents) attach(sc state.Scope, c *child) (*child, error) {
	if err := sc.Flush(); err != nil {
		return nil, err
	}
	run, last := sc.Active.Run, sc.Log.Seq()
	for after := max(run.Began, run.StartSeq, 1) - 1; after < last; {
		page, err := sc.Store.ListEvents(sc, sc.Lease.Key, after, 0, pageBytes)
		if err != nil {
			return nil, fmt.Errorf("read what is copied of a subagent's log: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			c.note(e)
		}
		after = page[len(page)-1].Seq
	}
	c.read = c.copied
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children[c.call] = c
	return c, nil
}

// note takes from an event of the parent's log what it says about the child.
func (c *child) note(e *sessionv1.Event) {
	switch b := e.Body.(type) {
	case *sessionv1.Event_SubagentStarted:
		c.started = c.started || b.SubagentStarted.CallId == c.call
	case *sessionv1.Event_SubagentEvent:
		if b.SubagentEvent.CallId == c.call {
			c.copied = b.SubagentEvent.Event.GetSeq()
			c.over = c.over || c.ends(b.SubagentEvent.Event)
		}
	}
}

// ends reports whether an event ends the child's turn.
func (c *child) ends(e *sessionv1.Event) bool {
	return e.GetTurn() == c.turn && e.GetTurnFinished() != nil
}
