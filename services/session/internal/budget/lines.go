package budget

import (
	"context"
	"sync"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Lines are the turns of this replica that wait for a budget, a line for each:
// who is first in it may look whether there is room, and the others follow in the
// order in which they came. The zero value is ready; it is safe for concurrent use.
type Lines struct {
	mu    sync.Mutex
	lines map[lineKey]*line
}

type lineKey struct {
	tenant, subject string
	scope           store.BudgetScope
}

type line struct {
	first chan struct{} // full while somebody is first
	there int           // who waits or is first; with the last one the line goes
}

// Enter waits until the caller is first in the line of a budget; leave lets the
// next one be. The error is that ctx has ended.
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
