package eventlog

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

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
