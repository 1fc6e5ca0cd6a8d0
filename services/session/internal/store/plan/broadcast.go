package plan

import (
	"context"
	"fmt"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxQueuedWakes bounds the queue of a slow listener.
const maxQueuedWakes = 4096

// Broadcast sends wakes to any number of listeners. Sending never blocks.
type Broadcast struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	closed    chan struct{}
	pumps     sync.WaitGroup
}

// NewBroadcast returns a Broadcast without listeners.
func NewBroadcast() *Broadcast {
	return &Broadcast{listeners: map[*listener]struct{}{}, closed: make(chan struct{})}
}

// listener holds the wakes that its receiver has not taken yet, without
// duplicates.
type listener struct {
	mu     sync.Mutex
	queue  []store.Wake
	queued map[store.Wake]struct{}
	ready  chan struct{} // holds a token while the queue is not empty
}

// Listen adds a listener until ctx or the broadcast ends; then its channel is
// closed. Pending wakes of the same session and kind are sent once.
func (b *Broadcast) Listen(ctx context.Context) (<-chan store.Wake, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closed:
		return nil, fmt.Errorf("listen: %w: the store is closed", store.ErrUnavailable)
	default:
	}
	l := &listener{queued: map[store.Wake]struct{}{}, ready: make(chan struct{}, 1)}
	b.listeners[l] = struct{}{}
	out := make(chan store.Wake)
	b.pumps.Go(func() {
		defer close(out)
		defer b.remove(l)
		l.pump(ctx, b.closed, out)
	})
	return out, nil
}

func (b *Broadcast) remove(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, l)
}

// Send sends wakes to every listener.
func (b *Broadcast) Send(wakes ...store.Wake) {
	if len(wakes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners {
		l.put(wakes)
	}
}

// Close ends all listeners and waits until their channels are closed.
func (b *Broadcast) Close() {
	b.mu.Lock()
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	b.mu.Unlock()
	b.pumps.Wait()
}

func (l *listener) put(wakes []store.Wake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := store.Wake{Kind: store.WakeLost}
	for _, w := range wakes {
		if _, ok := l.queued[lost]; ok {
			break // the receiver will look at everything anyway
		}
		if _, ok := l.queued[w]; ok {
			continue
		}
		if w.Kind == store.WakeLost || len(l.queue) >= maxQueuedWakes {
			w = lost
			l.queue = nil
			clear(l.queued)
		}
		l.queue = append(l.queue, w)
		l.queued[w] = struct{}{}
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

func (l *listener) take() (store.Wake, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return store.Wake{}, false
	}
	w := l.queue[0]
	l.queue = l.queue[1:]
	delete(l.queued, w)
	return w, true
}

func (l *listener) pump(ctx context.Context, closed <-chan struct{}, out chan<- store.Wake) {
	for {
		w, ok := l.take()
		send := out
		if !ok {
			send = nil // nothing to send: wait for more
		}
		ready := l.ready
		if ok {
			ready = nil
		}
		select {
		case send <- w:
		case <-ready:
		case <-ctx.Done():
			return
		case <-closed:
			return
		}
	}
}
