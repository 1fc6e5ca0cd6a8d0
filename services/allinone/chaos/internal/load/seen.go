package load

import (
	"context"
	"slices"
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Kinds of what clients see.
const (
	completed = "a turn that ended COMPLETE"
	ran       = "a command that ended OK"
	helped    = "a subagent that ended"
)

// sightings are the kinds that no client has seen yet.
type sightings struct {
	mu      sync.Mutex
	missing []string
	all     chan struct{} // closed when none is missing
}

func newSightings() *sightings {
	return &sightings{missing: []string{completed, ran, helped}, all: make(chan struct{})}
}

// note notes an event.
func (s *sightings) note(e *sessionv1.Event) {
	kind := ""
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TurnFinished:
		if b.TurnFinished.GetState() == sessionv1.TurnState_TURN_STATE_COMPLETE {
			kind = completed
		}
	case *sessionv1.Event_ToolCallFinished:
		if b.ToolCallFinished.GetTool() == "Bash" && b.ToolCallFinished.GetOutcome() == sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
			kind = ran
		}
	case *sessionv1.Event_SubagentFinished:
		kind = helped
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.missing, kind); i >= 0 {
		if s.missing = slices.Delete(s.missing, i, i+1); len(s.missing) == 0 {
			close(s.all)
		}
	}
}

// AwaitEachKind makes load until the clients have seen each kind of work at least once, or ctx ends, and returns the
// kinds that are missing.
func (l *Load) AwaitEachKind(ctx context.Context) []string {
	select {
	case <-l.seen.all:
	case <-ctx.Done():
	}
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	return slices.Clone(l.seen.missing)
}
