package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var races = []testCase{
	{"of many takeovers of one call exactly one wins", oneTakeover},
	{"of many results of one call exactly one is recorded", oneResult},
	{"a start and the mark of a cancellation exclude each other", startOrMark},
	{"an epoch that rises beside a start fences what comes later", risingEpoch},
}

// racers is the number of competitors.
const racers = 8

// race runs try concurrently and returns the winner; the others must fail with
// ErrConflict.
func race(t *testing.T, try func(i int) error) (winner int) {
	t.Helper()
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { errs[i] = try(i) })
	}
	wg.Wait()
	winner = -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		default:
			want(t, err, store.ErrConflict)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	return winner
}

func oneTakeover(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, over)))
	owner := func(i int) store.Owner { return store.Owner{ID: fmt.Sprint("racer ", i), Address: "a"} }
	winner := race(t, func(i int) error { return s.TakeOver(t.Context(), ref("c1"), 1, owner(i), long) })
	belongs(t, s, "c1", owner(winner), 2, true)
}

func oneResult(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	winner := race(t, func(i int) error {
		return s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, Claim: 1, Result: []byte{byte(i)}, At: at})
	})
	if got := enter(t, s, "c1").Result; len(got) != 1 || int(got[0]) != winner {
		t.Fatalf("the recorded result is %v, racer %d won", got, winner)
	}
}

func startOrMark(t *testing.T, s store.Store) {
	for n := range 10 {
		id := fmt.Sprint("c", n)
		winner := race(t, func(i int) error {
			if i%2 == 0 {
				return s.Move(t.Context(), ref(id), store.Change{To: store.Cancelled, Fenced: true, Result: []byte("never"), At: at})
			}
			return s.Move(t.Context(), ref(id), started(ann, long))
		})
		if got := enter(t, s, id).State; (got == store.Started) != (winner%2 == 1) {
			t.Fatalf("the call is %s, racer %d won", got, winner)
		}
	}
}

// risingEpoch lets starts under two epochs compete: a start under the lower
// epoch must come before the higher one is seen.
func risingEpoch(t *testing.T, s store.Store) {
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			r := ref(fmt.Sprint("c", i))
			r.Epoch = int64(10 + i%2)
			errs[i] = s.Move(t.Context(), r, started(ann, long))
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && (i%2 == 1 || !errors.Is(err, store.ErrStaleEpoch)) {
			t.Fatalf("racer %d: %v", i, err)
		}
	}
	late := ref("late")
	late.Epoch = 10
	want(t, s.Move(t.Context(), late, started(ann, long)), store.ErrStaleEpoch)
}
