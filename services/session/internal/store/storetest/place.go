package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testPlaces(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a holder sets the place and reads it, and an older one does not", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		if p := f.place(l); p != (store.Place{}) {
			t.Errorf("at first %+v", p)
		}
		if _, _, err := f.PlaceOf(f.ctx(), l.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("at first: %v", err)
		}
		for _, want := range []store.Place{{Node: "a", Generation: 1}, {Node: "b", Generation: 2, Restore: true, Left: store.Left{Node: "a", Why: store.Planned}}, {Node: "b", Generation: 2, Made: true}} {
			f.commit(store.Write{Lease: l, LastSeq: f.session(l.Key).LastSeq, PlaceChange: store.PlaceChange{Place: &want}})
			if d := cmp.Diff(want, f.place(l)); d != "" {
				t.Error(d)
			}
		}
		stale := l
		stale.Epoch--
		errs, err := f.Commit(f.ctx(), []store.Write{{Lease: stale, PlaceChange: store.PlaceChange{Place: &store.Place{Node: "c", Generation: 9}}}})
		if err != nil || !errors.Is(errs[0], store.ErrStaleEpoch) {
			t.Errorf("a stale holder: %v, %v", errs, err)
		}
		got, epoch, err := f.PlaceOf(f.ctx(), l.Key)
		if err != nil || epoch != l.Epoch || got.Node != "b" {
			t.Errorf("%+v at epoch %d, %v", got, epoch, err)
		}
	})

	t.Run("that a workspace was made counts for its own place alone, and stays there", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		elsewhere := func(generation int64) {
			if err := f.NoteMade(f.ctx(), l.Key, generation); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("of generation %d: %v", generation, err)
			}
		}
		elsewhere(1) // without a place
		commit := func(w store.Write) {
			w.Lease, w.LastSeq = l, f.session(l.Key).LastSeq
			f.commit(w)
		}
		commit(store.Write{PlaceChange: store.PlaceChange{Made: 1}})
		for _, c := range []struct {
			what string
			do   func()
			want bool
		}{
			{"at first", func() {
				commit(store.Write{PlaceChange: store.PlaceChange{Place: &store.Place{Node: "a", Generation: 1}}})
			}, false},
			{"by another place's", func() { commit(store.Write{PlaceChange: store.PlaceChange{Made: 2}}); elsewhere(2) }, false},
			{"by a request", func() { f.must(f.NoteMade(f.ctx(), l.Key, 1)) }, true},
			{"by who has not heard of it", func() {
				commit(store.Write{PlaceChange: store.PlaceChange{Place: &store.Place{Node: "a", Generation: 1}}})
			}, true},
			{"in the next place", func() {
				commit(store.Write{PlaceChange: store.PlaceChange{Place: &store.Place{Node: "b", Generation: 2, Restore: true}, Made: 1}})
			}, false},
			{"by the old one's", func() { elsewhere(1) }, false},
			{"by the holder", func() { commit(store.Write{PlaceChange: store.PlaceChange{Made: 2}}) }, true},
			{"with the place", func() {
				commit(store.Write{PlaceChange: store.PlaceChange{Place: &store.Place{Node: "c", Generation: 3, Made: true}}})
			}, true},
			{"in another one", func() {
				commit(store.Write{PlaceChange: store.PlaceChange{Place: &store.Place{Node: "d", Generation: 4}}})
			}, false},
			{"by its export", func() { f.must(f.NoteExport(f.ctx(), l.Key, 4, store.Export{Seq: 1, Snapshot: "x"})) }, true},
			{"when it is forgotten", func() { f.must(f.ForgetPlace(f.ctx(), l.Key)) }, false},
		} {
			if c.do(); f.place(l).Made != c.want {
				t.Errorf("%s: %+v", c.what, f.place(l))
			}
		}
	})

	t.Run("an export counts for its own place alone, and stays when the place changes", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		f.commit(store.Write{Lease: l, PlaceChange: store.PlaceChange{Place: &store.Place{Node: "a", Generation: 3}}})
		e := store.Export{Turn: "t1", Seq: 7, Snapshot: "x"}
		for _, generation := range []int64{2, 4} {
			if err := f.NoteExport(f.ctx(), l.Key, generation, e); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("of generation %d: %v", generation, err)
			}
		}
		f.must(f.NoteExport(f.ctx(), l.Key, 3, e))
		f.must(f.NoteExport(f.ctx(), l.Key, 3, store.Export{Turn: "t0", Seq: 6, Snapshot: "old"}))
		left := store.Left{Node: "a", Why: store.NodeLost}
		f.commit(store.Write{Lease: l, PlaceChange: store.PlaceChange{Place: &store.Place{Node: "b", Generation: 4, Restore: true, Left: left}}})
		got := f.place(l)
		if d := time.Since(got.Export.Time); d < -time.Minute || d > time.Minute {
			t.Errorf("exported at %v", got.Export.Time)
		}
		got.Export.Time = time.Time{}
		if d := cmp.Diff(store.Place{Node: "b", Generation: 4, Restore: true, Left: left, Export: e}, got); d != "" {
			t.Error(d)
		}
	})

	t.Run("exports of before a rewind are void, and are not noted any more", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		f.commit(store.Write{Lease: l, PlaceChange: store.PlaceChange{VoidExports: 3}}) // without a place
		f.commit(store.Write{Lease: l, LastSeq: f.session(l.Key).LastSeq, PlaceChange: store.PlaceChange{Place: &store.Place{Node: "a", Generation: 1}}})
		f.must(f.NoteExport(f.ctx(), l.Key, 1, store.Export{Turn: "t1", Seq: 7, Snapshot: "x"}))
		if p := f.place(l); p.Export.Void() {
			t.Errorf("before the rewind: %+v", p)
		}
		f.commit(store.Write{Lease: l, LastSeq: f.session(l.Key).LastSeq, PlaceChange: store.PlaceChange{VoidExports: 20}})
		f.must(f.NoteExport(f.ctx(), l.Key, 1, store.Export{Turn: "t2", Seq: 19, Snapshot: "late"}))
		if p := f.place(l); !p.Export.Void() || p.Export != (store.Export{Seq: 20, Snapshot: "x"}) {
			t.Errorf("after the rewind: %+v", p)
		}
		f.must(f.NoteExport(f.ctx(), l.Key, 1, store.Export{Seq: 20, Snapshot: "y"}))
		f.must(f.NoteExport(f.ctx(), l.Key, 1, store.Export{Turn: "t2", Seq: 19, Snapshot: "late"}))
		if p := f.place(l); p.Export.Void() || p.Export.Snapshot != "y" || p.Export.Seq != 20 {
			t.Errorf("when it is exported again: %+v", p)
		}
	})

	t.Run("the place outlives the session until it is forgotten, and the generation for ever", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		p, err := f.PlaceNew(f.ctx(), k, store.Place{Node: "a", Generation: 5})
		f.must(err)
		if again, err := f.PlaceNew(f.ctx(), k, store.Place{Node: "b", Generation: 1}); err != nil || again != p || p.Node != "a" {
			t.Errorf("%+v, then %+v, %v", p, again, err)
		}
		f.must(f.NoteExport(f.ctx(), k, 5, store.Export{Turn: "t", Seq: 1}))
		_, err = f.DeleteSession(f.ctx(), k, store.Request{})
		f.must(err)
		if got, epoch, err := f.PlaceOf(f.ctx(), k); err != nil || got.Node != "a" || epoch != 0 {
			t.Errorf("of the deleted session: %+v at epoch %d, %v", got, epoch, err)
		}
		f.must(f.ForgetPlace(f.ctx(), k))
		if got, _, err := f.PlaceOf(f.ctx(), k); err != nil || got != (store.Place{Generation: 5}) {
			t.Errorf("when it is forgotten: %+v, %v", got, err)
		}
		if got, err := f.PlaceNew(f.ctx(), k, store.Place{Node: "b", Generation: 1}); err != nil || got != (store.Place{Node: "b", Generation: 6}) {
			t.Errorf("when it is made again: %+v, %v", got, err)
		}
	})

	t.Run("what is on a node is listed in pages", func(t *testing.T) {
		f := newFixture(t, open)
		for _, s := range []string{"c", "a", "b"} {
			_, err := f.PlaceNew(f.ctx(), key(s), store.Place{Node: "n", Generation: 1})
			f.must(err)
		}
		_, err := f.PlaceNew(f.ctx(), key("d"), store.Place{Node: "other", Generation: 1})
		f.must(err)
		var got []store.Key
		for after := (store.Key{}); ; {
			some, err := f.PlacedOn(f.ctx(), "n", after, 2)
			f.must(err)
			if got = append(got, some...); len(some) < 2 {
				break
			}
			after = some[1]
		}
		if d := cmp.Diff([]store.Key{key("a"), key("b"), key("c")}, got); d != "" {
			t.Error(d)
		}
	})

	t.Run("nodes are drained until the operator ends it", func(t *testing.T) {
		f := newFixture(t, open)
		for _, c := range []struct {
			node string
			on   bool
			want []string
		}{{"b", true, []string{"b"}}, {"a", true, []string{"a", "b"}}, {"a", true, []string{"a", "b"}}, {"b", false, []string{"a"}}, {"b", false, []string{"a"}}} {
			f.must(f.SetDraining(f.ctx(), c.node, c.on))
			got, err := f.Draining(f.ctx())
			f.must(err)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		}
	})
}

// place returns a holder's view of the place.
func (f *fixture) place(l store.Lease) store.Place {
	f.Helper()
	s, err := f.Load(f.ctx(), l)
	f.must(err)
	return s.Place
}
