// Package feed shares one stream of the session service among all followers of a session.
//
// A follower first reads the log on a stream of its own, so the service checks its caller and its place. Once it has
// caught up, it joins the feed. A follower that falls behind what the feed keeps returns to a stream of its own. So
// a slow follower delays no other, and a feed takes bounded memory.
package feed

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// keep bounds the events that a feed keeps for its followers, in bytes. overhead is about an event's memory beside them.
const keep, overhead = 1 << 20, 512

// ErrBehind tells a follower that the feed does not have what comes next for it.
var ErrBehind = errors.New("feed: the follower is behind")

// Hub has the feeds. It is safe for concurrent use.
type Hub struct {
	client sessionv1.SessionServiceClient

	mu      sync.Mutex
	feeds   map[key]*feed
	running sync.WaitGroup
}

// A session's owner may not matter to the service, which the feed acts as, but its tenant does.
type key struct{ tenant, session string }

// NewHub returns a Hub of the session service.
func NewHub(client sessionv1.SessionServiceClient) *Hub {
	return &Hub{client: client, feeds: map[key]*feed{}}
}

// Wait waits until the feeds have ended that no follower reads any more.
func (h *Hub) Wait() { h.running.Wait() }

// feed is the live end of one session's log.
type feed struct {
	hub    *Hub
	key    key
	cancel context.CancelFunc

	mu      sync.Mutex
	readers map[*Reader]struct{}
	entries []*Entry // without gaps
	after   int64    // the number before entries
	last    int64    // the number of the last entry
	bytes   int      // of entries
	beats   int      // progress messages so far
	changes int      // of the session, which the log does not have
	err     error    // why the feed has ended
}

// Reader is a follower's place in a feed. One goroutine uses it at a time.
type Reader struct {
	feed   *feed
	notify func()
	after  int64
	beats  int

	changes int
}

// Join returns a Reader behind a number up to which its follower has read the log, which the service must have allowed.
// ctx has the principal and does not bound the feed. notify is called, and must not block, when Next has more.
// Without what follows the number, Join returns ErrBehind.
func (h *Hub) Join(ctx context.Context, session string, after int64, notify func()) (*Reader, error) { //nolint:contextcheck // a feed outlives its first follower
	caller, ok := principal.From(ctx)
	if !ok {
		caller = principal.Default()
	}
	k := key{caller.Tenant, session}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[k]
	if f == nil {
		service, cancel := context.WithCancel(principal.With(context.Background(), principal.Service(caller.Tenant, caller.User)))
		f = &feed{hub: h, key: k, cancel: cancel, readers: map[*Reader]struct{}{}, after: after, last: after}
		h.feeds[k] = f
		h.running.Go(func() { f.run(service, after) })
	}
	r := &Reader{feed: f, notify: notify, after: after}
	return r, f.add(r)
}

func (f *feed) add(r *Reader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.after < f.after {
		return ErrBehind
	}
	r.beats, r.changes = f.beats, -1
	f.readers[r] = struct{}{}
	if f.last > r.after || f.err != nil || f.beats > 0 {
		r.notify()
	}
	return nil
}

// Leave ends the reading. A feed ends with its last reader.
func (r *Reader) Leave() {
	f := r.feed
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
	if len(f.readers) == 0 {
		f.leave()
	}
}

// leave removes the feed from the hub, for which the caller holds both locks.
func (f *feed) leave() {
	f.cancel()
	if f.hub.feeds[f.key] == f {
		delete(f.hub.feeds, f.key)
	}
}

// After returns the number up to which the follower has read.
func (r *Reader) After() int64 { return r.after }

// Next returns the entries behind the reader's place, and whether the service said since that the log is quiet. Its
// error is ErrBehind, or the reason for which the feed has ended; then entries are empty.
func (r *Reader) Next() (entries []*Entry, quiet bool, err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.after < f.after:
		return nil, false, ErrBehind
	case r.after >= f.last && f.err != nil:
		return nil, false, f.err
	}
	i := len(f.entries)
	for i > 0 && f.entries[i-1].Event.GetSeq() > r.after {
		i--
	}
	entries = append(entries, f.entries[i:]...)         // the feed drops its own
	quiet, r.beats = f.beats > max(r.beats, 1), f.beats // the first one tells only that the feed has caught up
	r.after = max(r.after, f.last)
	return entries, quiet, nil
}

// Changed reports whether the session may have changed, since the last call, in a way that its log does not have. The
// first time is when the feed has caught up with the log: a change before that was reported to no reader.
func (r *Reader) Changed() bool {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.beats == 0 || r.changes == f.changes {
		return false
	}
	r.changes = f.changes
	return true
}

// run receives until the service or the last reader ends it.
func (f *feed) run(ctx context.Context, after int64) {
	st, err := f.hub.client.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: f.key.session, AfterSeq: after})
	for err == nil {
		var m *sessionv1.StreamEventsResponse
		if m, err = st.Recv(); err == nil {
			f.take(m)
		}
	}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
	f.err = err
	f.wake()
}

// take keeps what the service has sent.
func (f *feed) take(m *sessionv1.StreamEventsResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := m.GetEvent()
	switch {
	case e != nil && e.GetSeq() > f.last:
		f.entries = append(f.entries, &Entry{Event: e, size: overhead + proto.Size(e)})
		f.last = e.GetSeq()
		f.bytes += f.entries[len(f.entries)-1].size
		f.drop(keep)
	case m.GetProgress() != nil:
		f.last = max(f.last, m.GetProgress().GetSeq())
		f.beats++
		if m.GetProgress().GetSessionChanged() {
			f.changes++
		}
		if f.beats > 1 {
			f.drop(0) // a follower that has not read them by now is slow
		}
	}
	f.wake()
}

// drop drops the oldest entries until at most some bytes are kept.
func (f *feed) drop(most int) {
	n := 0
	for f.bytes > most {
		f.bytes -= f.entries[n].size
		f.after = f.entries[n].Event.GetSeq()
		f.entries[n] = nil
		n++
	}
	if f.entries = f.entries[n:]; len(f.entries) == 0 {
		f.entries, f.after = nil, f.last
	}
}

func (f *feed) wake() {
	for r := range f.readers {
		r.notify()
	}
}
