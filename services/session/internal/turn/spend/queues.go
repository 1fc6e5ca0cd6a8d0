package spend

import (
	"context"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Queues are the queues of this replica's turns that wait for a budget, one for each
// budget. Only the first turn of a queue checks for room; the others follow in
// their order. The zero value is ready; it is safe for concurrent use.
type Queues struct {
	mu     sync.Mutex
	queues map[queueKey]*queue
}

type queueKey struct {
	tenant, subject string
	scope           store.BudgetScope
}

type queue struct {
	first chan struct{} // full while a turn is first
	there int           // turns that wait or are first; the last one removes the queue
}

// Enter waits until the caller is first in the queue of a budget; leave lets
// the next one be first. It returns an error if ctx has ended.
func (qs *Queues) Enter(ctx context.Context, tenant string, scope store.BudgetScope, subject string) (leave func(), err error) {
	key := queueKey{tenant, subject, scope}
	qs.mu.Lock()
	if qs.queues == nil {
		qs.queues = map[queueKey]*queue{}
	}
	q := qs.queues[key]
	if q == nil {
		q = &queue{first: make(chan struct{}, 1)}
		qs.queues[key] = q
	}
	q.there++
	qs.mu.Unlock()
	gone := func() {
		qs.mu.Lock()
		defer qs.mu.Unlock()
		if q.there--; q.there == 0 {
			delete(qs.queues, key)
		}
	}
	select {
	case q.first <- struct{}{}:
		return func() { <-q.first; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
}
