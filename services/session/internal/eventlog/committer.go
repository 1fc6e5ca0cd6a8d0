// Package eventlog appends to the logs of the sessions that this replica holds.
// One committer collects the writes of all of them since the last commit and
// commits them together; then it publishes the events. The next writes are
// collected during a commit, so an idle replica commits at once and a busy one
// in large batches.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// maxCommitBytes bounds one commit, so that one statement stays small.
	maxCommitBytes = 4 << 20
	// maxWaitingBytes bounds the pending writes of one session: Append blocks above it.
	maxWaitingBytes = 1 << 20
)

// ErrClosed says that the committer has stopped.
var ErrClosed = errors.New("the event log is closed")

// Store is the part of a store that the committer needs.
type Store interface {
	Commit(ctx context.Context, writes []store.Write) ([]error, error)
}

// Publish passes committed events to followers. It must not block.
type Publish func(k store.Key, events []*sessionv1.Event)

// Committer writes for all sessions that this replica holds.
type Committer struct {
	store   Store
	publish Publish
	timeout time.Duration

	mu      sync.Mutex
	waiting []*Log // logs with pending writes, in the order in which they began to wait
	closed  bool
	wake    chan struct{}
}

// New returns a committer; nothing is written until Run is called. A commit
// that takes longer than timeout has failed: it is unknown what a hanging
// database has written, so the sessions are loaded anew.
func New(s Store, p Publish, timeout time.Duration) *Committer {
	return &Committer{store: s, publish: p, timeout: timeout, wake: make(chan struct{}, 1)}
}

// Run writes until ctx ends; then it writes the pending writes and refuses
// further ones.
func (c *Committer) Run(ctx context.Context) error {
	for {
		select {
		case <-c.wake:
			c.commit(ctx)
		case <-ctx.Done():
			c.mu.Lock()
			c.closed = true
			c.mu.Unlock()
			c.commit(ctx)
			return nil
		}
	}
}

// commit writes until no write is pending.
func (c *Committer) commit(ctx context.Context) {
	for {
		logs, writes := c.gather()
		if len(writes) == 0 {
			return
		}
		errs, err := c.write(ctx, writes)
		for i, l := range logs {
			var failure error
			switch {
			case err != nil:
				failure = err
			case errs != nil:
				failure = errs[i]
			}
			if failure == nil && len(writes[i].Events) > 0 {
				c.publish(writes[i].Key, writes[i].Events)
			}
			l.committed(writes[i], failure)
		}
	}
}

// write makes one commit. The end of Run does not interrupt it, only the timeout.
func (c *Committer) write(ctx context.Context, writes []store.Write) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	errs, err := c.store.Commit(ctx, writes)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: a commit took longer than %v: %w", store.ErrUnavailable, c.timeout, err)
	}
	return errs, err
}

// gather takes the pending writes, up to the limit of one commit.
func (c *Committer) gather() ([]*Log, []store.Write) {
	var logs []*Log
	var writes []store.Write
	for size := 0; size < maxCommitBytes; {
		l := c.dequeue()
		if l == nil {
			break
		}
		w, bytes := l.takeBatch()
		w.Events = MergeDeltas(w.Events, maxDelta)
		logs, writes, size = append(logs, l), append(writes, w), size+bytes
	}
	return logs, writes
}

// dequeue takes the first log off the list. The lock of a log is taken before
// the committer's (Append), never after it.
func (c *Committer) dequeue() *Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	l := c.waiting[0]
	c.waiting = c.waiting[1:]
	return l
}

// Open returns the log of a session, which continues after its last number.
func (c *Committer) Open(l store.Lease, s *sessionv1.Session) *Log {
	g := &Log{committer: c, lease: l, seq: s.GetLastSeq(), committedSeq: s.GetLastSeq(), turns: s.GetFinishedTurns(), usage: &sessionv1.Usage{}}
	AddUsage(g.usage, s.GetUsage())
	g.changed.L = &g.mu
	return g
}

func (c *Committer) enqueue(l *Log) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.waiting = append(c.waiting, l)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// requeue appends a log to the list again, even after the end: writes that were
// accepted before it are written. Only the committer calls it, so it needs no
// wake.
func (c *Committer) requeue(l *Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, l)
}

// Log appends to one session's log. It is safe for concurrent use. Once a write
// has failed, every later call fails with the same error: the holder must load
// the session again.
type Log struct {
	committer *Committer
	lease     store.Lease

	mu           sync.Mutex
	changed      sync.Cond
	seq          int64            // last assigned number
	committedSeq int64            // last committed number
	turns        int32            // of the session that have ended, with what is appended
	usage        *sessionv1.Usage // of all of them
	next         store.Write
	queued       bool // in the committer's list, or in the current commit
	bytes        int  // waiting or being written
	appends      int64
	written      int64 // committed appends
	taken        int64 // appends in the current commit
	takenBytes   int
	err          error
}

// Lease returns the lease under which the log is written.
func (l *Log) Lease() store.Lease { return l.lease }

// Seq returns the last assigned sequence number.
func (l *Log) Seq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Append assigns the numbers of the write's events and queues it. It waits for
// the commit only when too much is pending. It sets Lease and LastSeq of w.
// From now on the events belong to the log.
func (l *Log) Append(ctx context.Context, w store.Write) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.await(ctx, func() bool { return l.bytes <= maxWaitingBytes })
	if l.err != nil {
		return l.err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	l.total(w)
	now := timestamppb.Now()
	for _, e := range w.Events {
		l.seq++
		e.FirstSeq, e.Seq, e.Time = l.seq, l.seq, now
		l.bytes += sizeOf(e)
	}
	merge(&l.next, w)
	l.appends++
	if l.queued {
		return nil
	}
	l.queued = true
	if err := l.committer.enqueue(l); err != nil {
		l.fail(err)
		return err
	}
	return nil
}

// total adds a write to what the session's turns have used, and tells it with the end of each turn. mu is held.
func (l *Log) total(w store.Write) {
	AddUsage(l.usage, w.AddUsage)
	for _, e := range w.Events {
		if f := e.GetTurnFinished(); f != nil {
			l.turns++
			f.SessionTurns, f.SessionUsage = l.turns, proto.CloneOf(l.usage)
		}
	}
}

// Flush waits until everything that was appended before is committed.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := l.appends
	l.await(ctx, func() bool { return l.written >= target })
	if l.err != nil {
		return l.err
	}
	if l.written < target {
		return context.Cause(ctx)
	}
	return nil
}

// await waits until so returns true, the log has failed, or ctx has ended. mu
// is held.
func (l *Log) await(ctx context.Context, so func() bool) {
	if so() {
		return // the path of each token: watching ctx would be expensive
	}
	stop := context.AfterFunc(ctx, func() { l.mu.Lock(); l.changed.Broadcast(); l.mu.Unlock() })
	defer stop()
	for l.err == nil && !so() && ctx.Err() == nil {
		l.changed.Wait()
	}
}

// Commit appends and waits for the commit.
func (l *Log) Commit(ctx context.Context, w store.Write) error {
	if err := l.Append(ctx, w); err != nil {
		return err
	}
	return l.Flush(ctx)
}

// Err returns the failure of the log, if it has failed.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// takeBatch passes the pending write to the committer. The log stays queued until
// committed: a write continues the one before it, so the two must not be in one
// commit.
func (l *Log) takeBatch() (store.Write, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.next
	w.Lease = l.lease
	w.LastSeq = l.committedSeq
	l.next = store.Write{}
	l.taken, l.takenBytes = l.appends, l.bytes
	return w, l.bytes
}

// committed handles the result of the last taken write, and queues later
// appends. After a failure nothing more is written: later appends build on the
// lost ones.
func (l *Log) committed(w store.Write, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail(fmt.Errorf("append to the log of session %s: %w", l.lease.Session, err))
		return
	}
	if n := len(w.Events); n > 0 {
		l.committedSeq = w.Events[n-1].Seq
	}
	l.written = l.taken
	l.bytes -= l.takenBytes
	if l.queued = l.appends > l.taken; l.queued {
		l.committer.requeue(l)
	}
	l.changed.Broadcast()
}

func (l *Log) fail(err error) {
	if l.err == nil {
		l.err = err
	}
	l.changed.Broadcast()
}
