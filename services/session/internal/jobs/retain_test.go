package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// idle deletes as many sessions as each call is told, and takes a while.
type idle struct {
	store.Store
	left  []int
	took  time.Duration
	asked []time.Duration
	err   error
}

func (s *idle) DeleteIdle(_ context.Context, d time.Duration, limit int) ([]store.Key, error) {
	time.Sleep(s.took) //nolint:forbidigo // the bubble's clock
	s.asked = append(s.asked, d)
	n := min(limit, s.left[0])
	s.left = s.left[1:]
	return make([]store.Key, n), s.err
}

func TestRetainDeletesUntilNothingIsLeftOrItsTimeIsUsed(t *testing.T) {
	for _, c := range []struct {
		name  string
		left  []int
		took  time.Duration
		err   error
		calls int
		due   time.Duration // after the beginning; 0: at once; -1: an error
	}{
		{"nothing to delete", []int{0}, 0, nil, 1, time.Hour},
		{"a few", []int{5}, 0, nil, 1, time.Hour},
		{"several batches", []int{100, 100, 7}, 0, nil, 3, time.Hour},
		{"more than there is time for", []int{100, 100, 100, 100, 100}, 3 * time.Second, nil, 4, 0},
		{"the store is away", []int{0}, 0, store.ErrUnavailable, 1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				s := &idle{left: c.left, took: c.took, err: c.err}
				deps := Deps{Store: s, Workspaces: &placement.Workspaces{}, Retention: 720 * time.Hour, Log: slog.New(slog.DiscardHandler)}
				again, err := deps.Handlers()[store.JobRetain](ctx, deps.Periodic()[0])
				if (err != nil) != (c.due < 0) || !errors.Is(err, c.err) {
					t.Fatal(err)
				}
				if len(s.asked) != c.calls || s.asked[0] != 720*time.Hour {
					t.Errorf("asked %v", s.asked)
				}
				if err != nil {
					return
				}
				if d := cmp.Diff(&store.Job{After: c.due}, again); d != "" {
					t.Error(d)
				}
			})
		})
	}
}
