package box

import (
	"sync"
	"time"
)

// lateness tells all who wait that time has passed. A timer for each command would wake a
// thread for each, though most end before it rings. It is safe for concurrent use.
type lateness struct {
	mu           sync.Mutex
	first, later chan struct{} // closed at the next ring, and at the one after that; nil: no waiter
	timer        *time.Timer   // nil: no waiter
}

// ring is how often it tells.
const ring = 20 * time.Millisecond

// passed is closed when ring has passed, at least once and at most twice.
func (l *lateness) passed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.later == nil {
		l.later = make(chan struct{})
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(ring, l.tell)
	}
	return l.later
}

func (l *lateness) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil {
		close(l.first)
	}
	l.first, l.later = l.later, nil
	if l.first == nil {
		l.timer = nil
		return
	}
	l.timer.Reset(ring)
}
