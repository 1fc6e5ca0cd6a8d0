package store

import (
	"context"
	"time"
)

// WorkLabel is the label of sessions whose tools a worker of the customer runs. Its value is the id of the environment
// whose queue the worker polls.
const WorkLabel = "fairlead/work-queue"

// WorkState is what a worker does with a work item.
type WorkState string

// The states of a work item.
const (
	WorkQueued   WorkState = "queued"
	WorkStarting WorkState = "starting"
	WorkActive   WorkState = "active"
	WorkStopping WorkState = "stopping"
	WorkStopped  WorkState = "stopped"
)

// WorkQueue names a queue, and whose sessions in it count.
type WorkQueue struct {
	Tenant, Environment string
	User                string // empty: all users'
}

// Work is a work item: a session with an active turn that needs a worker. The session itself is what is durable. The
// store keeps only who has taken it, in one row a session; Number counts the session's items.
type Work struct {
	Tenant, Environment, Session string
	Number                       int64
	State                        WorkState
	Worker                       string
	Metadata                     []byte // opaque
	CreateTime                   time.Time
	PollTime                     *time.Time // when a worker got it that has not acknowledged it
	AcknowledgeTime, StartTime   *time.Time
	HeartbeatTime                *time.Time
	TTL                          time.Duration // of the lease
	LeaseEnd                     *time.Time    // when the item goes back into the queue
	StopRequestTime, StopTime    *time.Time
}

// WorkPoll asks for a work item.
type WorkPoll struct {
	WorkQueue
	Worker string
	// Reclaim is the time after which an item that no worker has acknowledged is given out again.
	Reclaim time.Duration
}

// WorkStats counts a queue.
type WorkStats struct {
	Depth, Pending int
	Oldest         *time.Time
}

// WorkQueues are the work queues of environments.
type WorkQueues interface {
	// PollWork returns the oldest item of a queue that no worker has, and marks it as given out; ErrNotFound if there
	// is none. A session is in the queue as long as its turn is active, unless a worker has a lease on it.
	PollWork(ctx context.Context, p WorkPoll) (*Work, error)
	// GetWork reads an item, or ErrNotFound.
	GetWork(ctx context.Context, q WorkQueue, session string, number int64) (*Work, error)
	// ChangeWork changes an item as f says, which may run twice; ErrNotFound. The error of f changes nothing.
	ChangeWork(ctx context.Context, q WorkQueue, session string, number int64, f func(w *Work, now time.Time) error) (*Work, error)
	// ListWork lists the current item of each session behind the session after, by session.
	ListWork(ctx context.Context, q WorkQueue, after string, limit int) ([]*Work, error)
	// CountWork counts a queue.
	CountWork(ctx context.Context, q WorkQueue) (WorkStats, error)
}
