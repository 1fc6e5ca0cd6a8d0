package box

import (
	"sync"
	"time"
)

// lateness notifies all waiters that time has passed. One timer for each command would wake a thread for
// each, though most commands end earlier. It is safe for concurrent use.
type lateness struct {
	mu           sync.Mutex
	first, later chan struct{} // closed at the next ring, and at the one after that; nil: no waiter
	timer        *time.Timer   // nil: no waiter
}

// ring is how often it notifies.
const ring = 20 * time.Millisecond

// passed returns a channel that is closed after one to two rings.
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
