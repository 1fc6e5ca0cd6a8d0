// Package eventlog appends to the logs of the sessions that this replica holds.
// One committer gathers what all of them have produced since the last commit
// and writes it at once; what is committed is then published. While one commit
// is under way the next one gathers, so an idle replica commits at once and a
// busy one in large batches.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// maxCommitBytes bounds one commit, so that one statement stays small.
	maxCommitBytes = 4 << 20
	// maxWaitingBytes bounds what one session may have waiting: Append blocks above it.
	maxWaitingBytes = 1 << 20
)

// ErrClosed says that the committer has stopped.
var ErrClosed = errors.New("the event log is closed")

// Store is what the committer needs of a store.
type Store interface {
	Commit(ctx context.Context, writes []store.Write) ([]error, error)
}

// Publish hands committed events to followers. It must not block.
type Publish func(k store.Key, events []*sessionv1.Event)

// Committer writes for all sessions that this replica holds.
type Committer struct {
	store   Store
	publish Publish
	timeout time.Duration

	mu      sync.Mutex
	waiting []*Log // logs with something to write, in the order in which they began to wait
	closed  bool
	wake    chan struct{}
}

// New makes a committer; Run must run for anything to be written. A commit that
// takes longer than timeout has failed: of a database that hangs nobody learns
// what was written, so the sessions are loaded anew.
func New(s Store, p Publish, timeout time.Duration) *Committer {
	return &Committer{store: s, publish: p, timeout: timeout, wake: make(chan struct{}, 1)}
}

// Run writes until ctx ends; then it writes what is left and refuses the rest.
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

// commit writes until nothing waits.
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

// write makes one commit. The end of Run does not break it off: its time-out does.
func (c *Committer) write(ctx context.Context, writes []store.Write) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	errs, err := c.store.Commit(ctx, writes)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: a commit took longer than %v: %w", store.ErrUnavailable, c.timeout, err)
	}
	return errs, err
}

// gather takes what waits, up to the bound of one commit.
func (c *Committer) gather() ([]*Log, []store.Write) {
	var logs []*Log
	var writes []store.Write
	for size := 0; size < maxCommitBytes; {
		l := c.dequeue()
		if l == nil {
			break
		}
		w, bytes := l.take()
		w.Events = MergeDeltas(w.Events, maxDelta)
		logs, writes, size = append(logs, l), append(writes, w), size+bytes
	}
	return logs, writes
}

// dequeue takes the first log off the list. A log's lock is taken before the
// committer's (Append), never the other way round.
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

// Open begins to append to a session's log, behind lastSeq.
func (c *Committer) Open(l store.Lease, lastSeq int64) *Log {
	g := &Log{committer: c, lease: l, seq: lastSeq, committedSeq: lastSeq}
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

// requeue puts a log behind the others again, also after the end: what was
// accepted before it is written. The committer itself calls it and needs no wake.
func (c *Committer) requeue(l *Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, l)
}

// Log appends to one session's log. It is safe for concurrent use. Once a write
// has failed, every later call fails with the same error: whoever holds the
// session has to load it again.
type Log struct {
	committer *Committer
	lease     store.Lease

	mu           sync.Mutex
	changed      sync.Cond
	seq          int64 // last number given
	committedSeq int64 // last number committed
	next         store.Write
	queued       bool // in the committer's list, or in the commit under way
	bytes        int  // waiting or being written
	appends      int64
	written      int64 // the appends that are committed
	taken        int64 // the appends that are in the commit under way
	takenBytes   int
	err          error
}

// Lease tells under which lease the log is written.
func (l *Log) Lease() store.Lease { return l.lease }

// Seq is the last sequence number that was given.
func (l *Log) Seq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Append gives the write's events their numbers and queues it; it does not wait
// for the commit, except when too much waits. Lease and LastSeq of w are set
// here. The events belong to the log from now on.
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

// await waits until it is so, the log has failed, or ctx has ended. mu is held.
func (l *Log) await(ctx context.Context, so func() bool) {
	if so() {
		return // each token comes here: watching ctx has its price
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

// Err is the failure of the log, if it has failed.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// take hands what waits to the committer. The log stays queued until committed:
// a write continues the one before it, so the two never go into one commit.
func (l *Log) take() (store.Write, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.next
	w.Lease = l.lease
	w.LastSeq = l.committedSeq
	l.next = store.Write{}
	l.taken, l.takenBytes = l.appends, l.bytes
	return w, l.bytes
}

// committed tells how the write that was taken last went, and queues what was
// appended meanwhile. After a failure nothing more is written: what came later
// rests on what was lost.
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
