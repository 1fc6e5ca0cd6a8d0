package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testEvents(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	l := f.active("s1")
	events := []*sessionv1.Event{delta(2, 2, "two"), delta(3, 6, "three to six"), delta(7, 7, strings.Repeat("seven", 100)), delta(8, 9, "eight and nine")}
	events[1].Turn, events[1].Step = turnName(l.Key, "t1"), 3
	f.commit(store.Write{Lease: l, LastSeq: 1, Events: events})
	for _, c := range []struct {
		name            string
		after           int64
		limit, maxBytes int
		want            []*sessionv1.Event
	}{
		{"behind the first", 1, 0, 0, events},
		{"behind the end of a range", 6, 0, 0, events[2:]},
		{"behind a number within a range, the whole range comes again", 4, 0, 0, events[1:]},
		{"at the end", 9, 10, 0, nil},
		{"beyond the end", 99, 10, 0, nil},
		{"no more than a limit", 1, 2, 0, events[:2]},
		{"no more than some bytes", 1, 10, proto.Size(events[0]) + proto.Size(events[1]), events[:2]},
		{"a byte less", 1, 10, proto.Size(events[0]) + proto.Size(events[1]) - 1, events[:1]},
		{"at least one, however large", 6, 10, 1, events[2:3]},
		{"of both bounds the lower", 1, 1, 1 << 20, events[:1]},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := f.ListEvents(t.Context(), l.Key, c.after, c.limit, c.maxBytes)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == nil {
				want = []*sessionv1.Event{}
			}
			if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}

	t.Run("however it is written and read, the log has no gap and no overlap", func(t *testing.T) {
		f := newFixture(t, open)
		rapid.Check(t, func(r *rapid.T) {
			l := f.active(f.nextID("s"))
			wrote := f.writeLog(r, l)
			f.checkLog(r, l.Key, wrote)
		})
	})
}

// writeLog appends events of random ranges in random commits, some of them
// refused, and returns the expected log.
func (f *fixture) writeLog(r *rapid.T, l store.Lease) []*sessionv1.Event {
	var wrote []*sessionv1.Event
	last := int64(1)
	for range rapid.IntRange(0, 6).Draw(r, "commits") {
		w := store.Write{Lease: l, LastSeq: last}
		next := last
		for _, width := range rapid.SliceOfN(rapid.Int64Range(1, 5), 0, 5).Draw(r, "widths") {
			w.Events = append(w.Events, delta(next+1, next+width, fmt.Sprint("up to ", next+width)))
			next += width
		}
		gap := len(w.Events) > 0 && rapid.IntRange(0, 4).Draw(r, "mistake") == 0
		if gap {
			w.Events[0].FirstSeq++
		}
		errs, err := f.Commit(f.ctx(), []store.Write{w})
		if err != nil {
			r.Fatal(err)
		}
		if gap != (errs[0] != nil) {
			r.Fatalf("a gap: %t, but %v", gap, errs[0])
		}
		if !gap {
			wrote, last = append(wrote, w.Events...), next
		}
	}
	return wrote
}

// checkLog reads the log in pages from a random position.
func (f *fixture) checkLog(r *rapid.T, k store.Key, wrote []*sessionv1.Event) {
	end := int64(1)
	if n := len(wrote); n > 0 {
		end = wrote[n-1].Seq
	}
	after := rapid.Int64Range(1, end).Draw(r, "after")
	limit, maxBytes := rapid.IntRange(1, 7).Draw(r, "limit"), rapid.IntRange(0, 300).Draw(r, "bytes")
	want := []*sessionv1.Event{}
	for _, e := range wrote {
		if e.Seq > after {
			want = append(want, e)
		}
	}
	got := []*sessionv1.Event{}
	for {
		page, err := f.ListEvents(f.ctx(), k, after, limit, maxBytes)
		if err != nil {
			r.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1].Seq
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		r.Fatal(d)
	}
	for i := 1; i < len(got); i++ {
		if got[i].FirstSeq != got[i-1].Seq+1 {
			r.Fatalf("%d..%d after %d", got[i].FirstSeq, got[i].Seq, got[i-1].Seq)
		}
	}
	if s := f.session(k); s.LastSeq != end {
		r.Fatalf("the last number is %d, want %d", s.LastSeq, end)
	}
}
