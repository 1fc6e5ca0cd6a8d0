// Package hub passes committed events to the followers of a session in this
// process. A follower that falls too far behind is told to read the store, so a
// slow one costs bounded memory and delays no other.
package hub

import (
	"sync"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// overhead is about the memory of an event besides its bytes.
const overhead = 256

// Hub connects publishers and followers. It is safe for concurrent use.
type Hub struct {
	maxBytes  int
	mu        sync.Mutex
	followers map[store.Key]map[*Follower]struct{}
}

// New returns a hub in which at most maxBytes of events wait for one follower.
func New(maxBytes int) *Hub {
	return &Hub{maxBytes: maxBytes, followers: map[store.Key]map[*Follower]struct{}{}}
}

// Follower receives a session's events.
type Follower struct {
	hub *Hub
	key store.Key
	// C holds a token when Take has something to return.
	C chan struct{}

	mu      sync.Mutex
	batches [][]*sessionv1.Event
	bytes   int // of batches
	wake    bool
	changed bool
}

// Follow starts to follow a session. The caller must call Close.
func (h *Hub) Follow(k store.Key) *Follower {
	f := &Follower{hub: h, key: k, C: make(chan struct{}, 1)}
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

// Take returns what was published since its last call, in order, and whether the
// store has more. A follower checks the numbers: before a batch that leaves a gap
// it reads the store. changed reports whether the session has changed in a way that
// its log does not have.
func (f *Follower) Take() (batches [][]*sessionv1.Event, wake, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	batches, wake, changed = f.batches, f.wake, f.changed
	f.batches, f.bytes, f.wake, f.changed = nil, 0, false, false
	return batches, wake, changed
}

// Changed tells a session's followers of a change that its log does not have.
func (h *Hub) Changed(k store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.followers[k] {
		f.mu.Lock()
		f.changed = true
		f.ring()
		f.mu.Unlock()
	}
}

// Publish passes committed events to a session's followers. Without events it
// only wakes them. It never blocks: a follower with too many pending events
// loses them and reads the store instead.
func (h *Hub) Publish(k store.Key, events []*sessionv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	followers := h.followers[k]
	if len(followers) == 0 {
		return
	}
	bytes := 0
	for _, e := range events {
		bytes += overhead + proto.Size(e)
	}
	for f := range followers {
		f.offer(events, bytes)
	}
}

// WakeAll makes every follower look at the store.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, fs := range h.followers {
		for f := range fs {
			f.offer(nil, 0)
		}
	}
}

// Following reports whether the session has a follower in this process.
func (h *Hub) Following(k store.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.followers[k]) > 0
}

func (f *Follower) offer(events []*sessionv1.Event, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(events) == 0:
		f.wake = true
	case f.bytes+bytes > f.hub.maxBytes:
		f.batches, f.bytes, f.wake = nil, 0, true // all of it is in the store
	default:
		f.batches, f.bytes = append(f.batches, events), f.bytes+bytes
	}
	f.ring()
}

func (f *Follower) ring() {
	select {
	case f.C <- struct{}{}:
	default: // it has not taken the earlier token
	}
}
