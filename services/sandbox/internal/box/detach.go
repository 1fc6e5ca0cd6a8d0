package box

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Shown says over which folders mounts may lie in a sandbox, whoever's commands it was made for,
// and which lead there. No other comes until release is called, which may be called again: nothing
// starts meanwhile. Only a Change may ask, because other changes wait for it.
func (w *Workspace) Shown() (points []string, release func()) {
	s := w.s
	s.starts.Lock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.points)), sync.OnceFunc(s.starts.Unlock)
}

// Detach has no sandbox show any mounts, between a call of Shown and its release: somebody who does
// not have one is about to remove or move the folder over which it lies, and the kernel would take
// the mount from the sandbox of somebody who has. Commands to come would find the workspace's own
// folder in its place. ErrMountsInUse while commands run; those of the service's own are short, and
// it waits for them.
func (w *Workspace) Detach() error {
	s := w.s
	if err := s.awaitOwn(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.o.Runner.Stop(s.path("workspace"))
	clear(s.points)
	return nil
}

// addOwn notes that a task's command runs in the session's own sandbox, until gone is called.
func (s *session) addOwn() (gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[int64]chan struct{}{}
	}
	s.lastTask++
	number, ended := s.lastTask, make(chan struct{})
	s.own[number] = ended
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, number)
		close(ended)
	}
}

// ownTimeout is how long awaitOwn waits. Nothing can start meanwhile.
const ownTimeout = 2 * time.Second

// awaitOwn waits until nothing runs in the session's own sandbox: a while for tasks' commands,
// and not at all for others. ErrMountsInUse when something does. starts is held to write.
func (s *session) awaitOwn() error {
	s.mu.Lock()
	live, own := s.live(), slices.Collect(maps.Values(s.own))
	s.mu.Unlock()
	if len(live) > 0 {
		return fmt.Errorf("%w: command %s: wait for its end, or end it", ErrMountsInUse, live[0].ID())
	}
	late := time.NewTimer(ownTimeout)
	defer late.Stop()
	for _, ended := range own {
		select {
		case <-ended:
		case <-late.C:
			return fmt.Errorf("%w: one of the service's own, such as Git: try again in a moment", ErrMountsInUse)
		}
	}
	return nil
}
