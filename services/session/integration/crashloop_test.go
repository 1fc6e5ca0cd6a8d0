package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// results counts the writes that bring the end of a call, and those of them after which claims are counted anew.
type results struct {
	store.Store
	mu            sync.Mutex
	all, progress int
}

func (r *results) Commit(ctx context.Context, writes []store.Write) ([]error, error) {
	r.mu.Lock()
	for _, w := range writes {
		for _, e := range w.Events {
			if e.GetToolCallFinished() == nil {
				continue
			}
			r.all++
			if w.StepCommitted {
				r.progress++
			}
		}
	}
	r.mu.Unlock()
	return r.Store.Commit(ctx, writes)
}

// TestATurnGetsFurtherWithEveryCallThatEnds keeps a step of many calls from being taken for a crash loop when its holders
// die one after the other: each of them has brought it further.
func TestATurnGetsFurtherWithEveryCallThatEnds(t *testing.T) {
	t.Parallel()
	r := &results{}
	wrap := func(s store.Store) store.Store {
		r.Store = s
		return r
	}
	f := startOn(t, wrap, worked)
	f.turn(t.Context(), t, f.session(t.Context(), t), "work")
	if r.all != 4 || r.progress != r.all {
		t.Errorf("%d calls ended, and %d of them were told to the store as progress", r.all, r.progress)
	}
}
