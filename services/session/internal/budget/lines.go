package budget

import (
	"context"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Lines are the queues of this replica's turns that wait for a budget, one for each
// budget. Only the first turn of a queue checks for room; the others follow in
// their order. The zero value is ready; it is safe for concurrent use.
type Lines struct {
	mu    sync.Mutex
	lines map[lineKey]*line
}

type lineKey struct {
	tenant, subject string
	scope           store.BudgetScope
}

type line struct {
	first chan struct{} // full while a turn is first
	there int           // turns that wait or are first; the last one removes the queue
}

// Enter waits until the caller is first in the queue of a budget; leave lets
// the next one be first. It returns an error if ctx has ended.
func (l *Lines) Enter(ctx context.Context, tenant string, scope store.BudgetScope, subject string) (leave func(), err error) {
	key := lineKey{tenant, subject, scope}
	l.mu.Lock()
	if l.lines == nil {
		l.lines = map[lineKey]*line{}
	}
	q := l.lines[key]
	if q == nil {
		q = &line{first: make(chan struct{}, 1)}
		l.lines[key] = q
	}
	q.there++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if q.there--; q.there == 0 {
			delete(l.lines, key)
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
