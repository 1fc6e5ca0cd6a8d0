package workspace

import (
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// news are events about the making of a workspace that are not in the log yet. The making happens in the background and
// between turns, and only the worker appends events to a turn.
type news struct {
	mu     sync.Mutex
	events []*sessionv1.Event
}

func (n *news) add(e *sessionv1.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

// drain returns the events as those of a step of the active turn, and forgets them.
func (n *news) drain(sc state.Scope, step int32) []*sessionv1.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.events
	n.events = nil
	for _, e := range all {
		sc.Event(step, e)
	}
	return all
}

// News returns the events about the making of the workspace that are not in the log, for the end of a turn that made no call.
func (w *Workspace) News(sc state.Scope) []*sessionv1.Event { return w.maker.news.drain(sc, 0) }
