package call

import (
	"context"
	"sync"
)

// slots bounds the concurrent calls, in total and for each session. A call
// waits for a free slot before it is journaled.
type slots struct {
	total chan struct{}
	each  int

	mu       sync.Mutex
	sessions map[key]*sessionSlots
}

type sessionSlots struct {
	free chan struct{}
	refs int // calls that hold or want a slot
}

func newSlots(total, each int) *slots {
	return &slots{total: make(chan struct{}, total), each: each, sessions: map[key]*sessionSlots{}}
}

// acquire waits for a slot and returns the function that releases it.
func (s *slots) acquire(ctx context.Context, tenant, session string) (release func(), err error) {
	k := key{tenant, session}
	own := s.join(k)
	select {
	case own.free <- struct{}{}:
	case <-ctx.Done():
		s.leave(k, own)
		return nil, ctx.Err()
	}
	select {
	case s.total <- struct{}{}:
	case <-ctx.Done():
		<-own.free
		s.leave(k, own)
		return nil, ctx.Err()
	}
	return func() {
		<-s.total
		<-own.free
		s.leave(k, own)
	}, nil
}

func (s *slots) join(k key) *sessionSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.sessions[k]
	if own == nil {
		own = &sessionSlots{free: make(chan struct{}, s.each)}
		s.sessions[k] = own
	}
	own.refs++
	return own
}

func (s *slots) leave(k key, own *sessionSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.refs--; own.refs == 0 {
		delete(s.sessions, k)
	}
}
