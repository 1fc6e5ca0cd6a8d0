package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testFold(t *testing.T, open func(t *testing.T) store.Store) {
	// The log is 1 (session.created), 2..3, 4, 5..7, 8.
	log := func(f *fixture) store.Lease {
		l := f.active("s1")
		f.commit(store.Write{Lease: l, LastSeq: 1, Events: []*sessionv1.Event{delta(2, 3, "ab"), delta(4, 4, "c"), delta(5, 7, "def"), delta(8, 8, "g")}})
		return l
	}
	read := func(f *fixture, after int64) [][2]int64 {
		f.Helper()
		events, err := f.ListEvents(f.ctx(), key("s1"), after, 0, 0)
		f.must(err)
		var ranges [][2]int64
		for _, e := range events {
			ranges = append(ranges, [2]int64{e.FirstSeq, e.Seq})
		}
		return ranges
	}

	t.Run("a number inside a folded event's range shows that event again", func(t *testing.T) {
		f := newFixture(t, open)
		l := log(f)
		want := delta(2, 7, "abcdef")
		f.must(f.FoldEvents(f.ctx(), l.Key, 2, 7, []*sessionv1.Event{want}))
		for after, ranges := range map[int64][][2]int64{
			0: {{1, 1}, {2, 7}, {8, 8}}, 1: {{2, 7}, {8, 8}}, 2: {{2, 7}, {8, 8}}, 6: {{2, 7}, {8, 8}}, 7: {{8, 8}}, 8: nil,
		} {
			if d := cmp.Diff(ranges, read(f, after)); d != "" {
				t.Errorf("after %d: %s", after, d)
			}
		}
		events, err := f.ListEvents(f.ctx(), l.Key, 3, 1, 0)
		f.must(err)
		if d := cmp.Diff(want, events[0], protocmp.Transform()); d != "" {
			t.Error(d)
		}
		f.commit(store.Write{Lease: l, LastSeq: 8, Events: []*sessionv1.Event{delta(9, 9, "h")}})
	})

	t.Run("events that do not cover what is there change nothing", func(t *testing.T) {
		f := newFixture(t, open)
		k := log(f).Key
		for _, c := range []struct {
			name        string
			first, last int64
			events      []*sessionv1.Event
		}{
			{"a range that begins inside an event", 3, 7, []*sessionv1.Event{delta(3, 7, "x")}},
			{"a range that ends inside an event", 2, 6, []*sessionv1.Event{delta(2, 6, "x")}},
			{"a range beyond the end", 8, 9, []*sessionv1.Event{delta(8, 9, "x")}},
			{"events that leave a gap", 2, 7, []*sessionv1.Event{delta(2, 4, "x"), delta(6, 7, "x")}},
			{"events that overlap", 2, 7, []*sessionv1.Event{delta(2, 5, "x"), delta(5, 7, "x")}},
			{"events that cover less", 2, 7, []*sessionv1.Event{delta(2, 4, "x")}},
			{"no events", 2, 7, nil},
		} {
			if err := f.FoldEvents(f.ctx(), k, c.first, c.last, c.events); !errors.Is(err, store.ErrNotTiled) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if d := cmp.Diff([][2]int64{{1, 1}, {2, 3}, {4, 4}, {5, 7}, {8, 8}}, read(f, 0)); d != "" {
			t.Error(d)
		}
		for _, k := range []store.Key{key("none"), {Tenant: "other", Session: "s1"}} {
			if err := f.FoldEvents(f.ctx(), k, 1, 1, []*sessionv1.Event{delta(1, 1, "x")}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%v: %v", k, err)
			}
		}
	})

	t.Run("of folds at the same time one wins, and the log stays whole", func(t *testing.T) {
		f := newFixture(t, open)
		k := log(f).Key
		var mu sync.Mutex
		won := 0
		var folds sync.WaitGroup
		for last := range map[int64]bool{4: true, 7: true, 8: true} {
			folds.Go(func() {
				err := f.FoldEvents(f.ctx(), k, 2, last, []*sessionv1.Event{delta(2, last, "x")})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, store.ErrNotTiled) {
					t.Error(err)
				}
			})
		}
		folds.Wait()
		next := int64(1)
		for _, r := range read(f, 0) {
			if r[0] != next {
				t.Errorf("%v in the place of %d", r, next)
			}
			next = r[1] + 1
		}
		if won == 0 || next != 9 {
			t.Errorf("%d won, the log ends before %d", won, next)
		}
	})
}
