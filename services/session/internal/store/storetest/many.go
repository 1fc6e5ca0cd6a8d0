package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// testManyEvents commits so many events at once that a backend may use another
// way to write them.
func testManyEvents(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a commit of very many events keeps all of them, and refuses those of a lost session alone", func(t *testing.T) {
		f := newFixture(t, open)
		leases := []store.Lease{f.active("s1"), f.active("s2"), f.active("s3")}
		leases[2].Epoch-- // an older holder's
		const many = 700
		var writes []store.Write
		for _, l := range leases {
			w := store.Write{Lease: l, LastSeq: 1}
			for i := range int64(many) {
				w.Events = append(w.Events, delta(i+2, i+2, fmt.Sprintf("%s %d \x00\\N\t\n", l.Session, i)))
			}
			writes = append(writes, w)
		}
		errs, err := f.Commit(f.ctx(), writes)
		f.must(err)
		if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], store.ErrStaleEpoch) {
			t.Fatalf("errors %v", errs)
		}
		for i, l := range leases {
			events, err := f.ListEvents(f.ctx(), l.Key, 1, 0, 0)
			f.must(err)
			if want := []int{many, many, 0}[i]; len(events) != want {
				t.Fatalf("%s has %d events, want %d", l.Session, len(events), want)
			}
			for j, e := range events {
				if got, want := e.GetTextDelta().GetText(), fmt.Sprintf("%s %d \x00\\N\t\n", l.Session, j); got != want || e.Seq != int64(j+2) {
					t.Fatalf("event %d of %s: %d %q, want %q", j, l.Session, e.Seq, got, want)
				}
			}
		}
	})
}
