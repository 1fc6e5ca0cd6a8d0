package box

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// idleTime is how long an unused session stays in memory.
const idleTime = 10 * time.Minute

// sessions are the sessions of a node that are in memory. It is safe for concurrent use.
type sessions struct {
	node *Node

	mu   sync.Mutex // guards what follows
	open map[Key]*session
}

func newSessions(n *Node) *sessions { return &sessions{node: n, open: map[Key]*session{}} }

// enter returns a session, read from disk if needed, and keeps it in memory until leave is called.
func (all *sessions) enter(k Key) (s *session, leave func(), err error) {
	if err := k.check(); err != nil {
		return nil, nil, err
	}
	all.mu.Lock()
	s = all.open[k]
	if s == nil {
		s = newSession(all.node, k)
		all.open[k] = s
	}
	s.users++
	all.mu.Unlock()
	leave = func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		s.users--
		s.idle = all.node.o.Now()
	}
	if err := s.load(); err != nil {
		leave()
		return nil, nil, err
	}
	return s, leave, nil
}

// list returns the sessions in memory.
func (all *sessions) list() []*session {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Collect(maps.Values(all.open))
}

// evict removes a session from memory after ten idle minutes. The next use reads it from disk again.
func (all *sessions) evict(s *session) {
	busy := s.unwritten()
	all.mu.Lock()
	defer all.mu.Unlock()
	if !busy && s.users == 0 && all.node.o.Now().Sub(s.idle) > idleTime {
		delete(all.open, s.key)
	}
}

// occupied reports whether a session is in use, for example while its workspace is made.
func (all *sessions) occupied(k Key) bool {
	all.mu.Lock()
	s := all.open[k]
	all.mu.Unlock()
	if s == nil {
		return false
	}
	if !s.workspace.mu.TryLock() {
		return true
	}
	s.workspace.mu.Unlock()
	return false
}
