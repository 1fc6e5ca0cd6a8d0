// Package hub hands committed events to those who follow a session in this
// process. It keeps no events: a follower that falls behind is told to read the
// store, so a slow one costs bounded memory and slows nobody.
package hub

import (
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// buffered is how many publications may wait for one follower.
const buffered = 64

// Hub connects publishers and followers. It is safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	followers map[store.Key]map[*Follower]struct{}
}

// New makes a hub.
func New() *Hub { return &Hub{followers: map[store.Key]map[*Follower]struct{}{}} }

// Follower receives a session's events.
type Follower struct {
	hub *Hub
	key store.Key
	// C brings committed events in order; an empty batch means that there is
	// something in the store. A follower checks the numbers: after a gap it
	// reads the store.
	C chan []*sessionv1.Event
}

// Follow begins to follow a session. Close must be called.
func (h *Hub) Follow(k store.Key) *Follower {
	f := &Follower{hub: h, key: k, C: make(chan []*sessionv1.Event, buffered)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers[k] == nil {
		h.followers[k] = map[*Follower]struct{}{}
	}
	h.followers[k][f] = struct{}{}
	return f
}

// Close ends the following. C is not closed.
func (f *Follower) Close() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	delete(f.hub.followers[f.key], f)
	if len(f.hub.followers[f.key]) == 0 {
		delete(f.hub.followers, f.key)
	}
}

// Publish hands committed events to a session's followers. With no events it
// only wakes them. It never blocks: a full follower loses the batch, sees the
// gap in the numbers of the next one and reads the store. Since a full channel
// still holds something to receive, the last batch is never lost unnoticed for
// longer than the follower needs to empty it and look at the store.
func (h *Hub) Publish(k store.Key, events []*sessionv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.followers[k] {
		f.offer(events)
	}
}

// WakeAll makes every follower look at the store.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, fs := range h.followers {
		for f := range fs {
			f.offer(nil)
		}
	}
}

// Following tells whether anybody follows a session here.
func (h *Hub) Following(k store.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.followers[k]) > 0
}

func (f *Follower) offer(events []*sessionv1.Event) {
	select {
	case f.C <- events:
		return
	default:
	}
	// Full: replace the oldest batch by a wake, so that the follower finds the
	// gap even if nothing is ever published again.
	select {
	case <-f.C:
	default:
	}
	select {
	case f.C <- nil:
	default:
	}
}
