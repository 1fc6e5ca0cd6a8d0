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
