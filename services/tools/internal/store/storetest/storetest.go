// Package storetest is the suite that every backend of store.Store passes.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

type testCase struct {
	name string
	run  func(t *testing.T, s store.Store)
}

// Run runs the suite. open returns a store on an empty database, and closes it
// when the test ends.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	cases := []testCase{
		{"a call that was never heard of is in no state", unknown},
		{"a call is read back as it was recorded", readBack},
		{"a question is kept, and the call starts again with its answer", question},
		{"a move from another state is a conflict", conflict},
		{"of many starts of one call exactly one wins", oneStart},
		{"a lower epoch is refused", fencing},
		{"an unfenced move is not refused", unfenced},
		{"a holder in another session's workspace is fenced by its own epochs", holders},
		{"tenants do not see each other", tenants},
		{"a deleted session is forgotten and stays closed", deleted},
		{"a session that is made again under the name of a deleted one is open", deletedBefore},
		{"a cancelled context is told as such", cancelled},
		{"it can be reached", func(t *testing.T, s store.Store) { must(t, s.Ping(t.Context())) }},
	}
	for _, c := range slices.Concat(cases, leases, races, operations, permissions, logins) {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func ref(id string) store.Ref {
	return store.Ref{Tenant: "acme", Session: "sessions/s1", Epoch: 3, CallID: id}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got %v, want %v", err, target)
	}
}

func expect(t *testing.T, s store.Store, r store.Ref, record store.Record) {
	t.Helper()
	got, err := s.Enter(t.Context(), r)
	must(t, err)
	got.Owner, got.Claim, got.Live, got.Begun, got.Permissions = store.Owner{}, 0, false, false, 0 // lease.go and permission.go look at these
	if diff := cmp.Diff(record, got); diff != "" {
		t.Fatalf("call %s (-want +got):\n%s", r.CallID, diff)
	}
}

func start(to store.State) store.Change {
	return store.Change{To: to, Fenced: true, Tool: "Bash", Digest: "d1", At: at}
}

func holders(t *testing.T, s store.Store) {
	call := func(id, holder string, epoch int64) store.Ref {
		r := ref(id)
		r.Holder, r.Epoch = holder, epoch
		return r
	}
	must(t, s.Move(t.Context(), ref("c1"), start(store.Asked)))
	must(t, s.Move(t.Context(), call("c2", "sessions/sub-a", 9), start(store.Asked)))
	must(t, s.Move(t.Context(), call("c3", "sessions/sub-b", 1), start(store.Asked)))
	want(t, s.Move(t.Context(), call("c4", "sessions/sub-a", 8), start(store.Asked)), store.ErrStaleEpoch)
	must(t, s.Move(t.Context(), ref("c5"), start(store.Asked)))
	must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", 4)) // with the calls of its holders
	rec, err := s.Enter(t.Context(), call("c2", "sessions/sub-a", 9))
	must(t, err)
	if rec.State != store.None {
		t.Errorf("the call of a holder is left: %v", rec)
	}
}

func unknown(t *testing.T, s store.Store) { expect(t, s, ref("c1"), store.Record{}) }

func readBack(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Asked)))
	r := store.Record{Session: "sessions/s1", State: store.Asked, Tool: "Bash", Digest: "d1"}
	expect(t, s, ref("c1"), r)
	must(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Asked, To: store.Delegated, At: at}))
	r.State, r.Handed = store.Delegated, true
	expect(t, s, ref("c1"), r)
	must(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Delegated, To: store.Finished, Result: []byte{0, 1, 255}, At: at}))
	r.State, r.Result = store.Finished, []byte{0, 1, 255}
	expect(t, s, ref("c1"), r)
	must(t, s.Move(t.Context(), ref("c2"), store.Change{To: store.Cancelled, Fenced: true, At: at}))
	expect(t, s, ref("c2"), store.Record{Session: "sessions/s1", State: store.Cancelled})
}

func question(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Started)))
	ask := store.Change{From: store.Started, To: store.Asked, Claim: 1, Question: []byte("q1"), At: at}
	want(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Asked, Claim: 2, Question: []byte("q2"), At: at}), store.ErrConflict)
	must(t, s.Move(t.Context(), ref("c1"), ask))
	r := store.Record{Session: "sessions/s1", State: store.Asked, Tool: "Bash", Digest: "d1", Question: []byte("q1")}
	expect(t, s, ref("c1"), r)
	answer := start(store.Started)
	answer.From = store.Asked
	must(t, s.Move(t.Context(), ref("c1"), answer))
	r.State = store.Started
	expect(t, s, ref("c1"), r)
	got, err := s.Enter(t.Context(), ref("c1"))
	must(t, err)
	if got.Claim != 2 {
		t.Errorf("the claim is %d, want the next one", got.Claim)
	}
}

func conflict(t *testing.T, s store.Store) {
	started := store.Change{From: store.Started, To: store.Finished, Result: []byte("r"), At: at}
	want(t, s.Move(t.Context(), ref("c1"), started), store.ErrConflict)
	must(t, s.Move(t.Context(), ref("c1"), start(store.Started)))
	want(t, s.Move(t.Context(), ref("c1"), start(store.Started)), store.ErrConflict)
	must(t, s.Move(t.Context(), ref("c1"), started))
	want(t, s.Move(t.Context(), ref("c1"), started), store.ErrConflict)
	expect(t, s, ref("c1"), store.Record{Session: "sessions/s1", State: store.Finished, Tool: "Bash", Digest: "d1", Result: []byte("r")})
}

func oneStart(t *testing.T, s store.Store) {
	for _, from := range []store.State{store.None, store.Asked} {
		id := "c-" + string(from) + "x"
		if from != store.None {
			must(t, s.Move(t.Context(), ref(id), start(from)))
		}
		const racers = 8
		errs := make([]error, racers)
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				c := start(store.Started)
				c.From, c.Digest = from, fmt.Sprint("racer ", i)
				errs[i] = s.Move(t.Context(), ref(id), c)
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("from %q: both %d and %d won", from, winner, i)
			case err == nil:
				winner = i
			default:
				want(t, err, store.ErrConflict)
			}
		}
		if winner < 0 {
			t.Fatalf("from %q: nobody won", from)
		}
		expect(t, s, ref(id), store.Record{Session: "sessions/s1", State: store.Started, Tool: "Bash", Digest: fmt.Sprint("racer ", winner)})
	}
}

func fencing(t *testing.T, s store.Store) {
	expect(t, s, ref("c1"), store.Record{})
	lower := ref("c1")
	lower.Epoch = 2
	_, err := s.Enter(t.Context(), lower)
	want(t, err, store.ErrStaleEpoch)
	want(t, s.Move(t.Context(), lower, start(store.Started)), store.ErrStaleEpoch)
	expect(t, s, ref("c1"), store.Record{})
	higher := ref("c1")
	higher.Epoch = 4
	must(t, s.Move(t.Context(), higher, start(store.Started)))
	_, err = s.Enter(t.Context(), ref("c1"))
	want(t, err, store.ErrStaleEpoch)
	other := ref("c9")
	other.Session, other.Epoch = "sessions/s2", 1
	expect(t, s, other, store.Record{})
}

func unfenced(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Started)))
	higher := ref("c1")
	higher.Epoch = 9
	_, err := s.Enter(t.Context(), higher)
	must(t, err)
	must(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, Result: []byte("r"), At: at}))
	expect(t, s, higher, store.Record{Session: "sessions/s1", State: store.Finished, Tool: "Bash", Digest: "d1", Result: []byte("r")})
}

func tenants(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Started)))
	other := ref("c1")
	other.Tenant, other.Epoch = "umbrella", 1 // the same session's name, an epoch that would be stale
	expect(t, s, other, store.Record{})
	want(t, s.Move(t.Context(), other, store.Change{From: store.Started, To: store.Finished, At: at}), store.ErrConflict)
	c := start(store.Asked)
	c.Digest = "d2"
	must(t, s.Move(t.Context(), other, c))
	must(t, s.DeleteSession(t.Context(), "umbrella", "sessions/s1", store.NoEpoch))
	expect(t, s, ref("c1"), store.Record{Session: "sessions/s1", State: store.Started, Tool: "Bash", Digest: "d1"})
}

func deleted(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Started)))
	other := ref("c2")
	other.Session = "sessions/s2"
	must(t, s.Move(t.Context(), other, start(store.Started)))
	for range 2 {
		must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", store.NoEpoch))
	}
	_, err := s.Enter(t.Context(), ref("c1"))
	want(t, err, store.ErrStaleEpoch)
	want(t, s.Move(t.Context(), ref("c1"), start(store.Started)), store.ErrStaleEpoch)
	want(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, At: at}), store.ErrConflict)
	expect(t, s, other, store.Record{Session: "sessions/s2", State: store.Started, Tool: "Bash", Digest: "d1"})
}

func deletedBefore(t *testing.T, s store.Store) {
	before, after := ref("c1"), ref("c2")
	before.Epoch, after.Epoch = 5, 6
	must(t, s.Move(t.Context(), before, start(store.Started)))
	for range 2 {
		must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", 6))
	}
	_, err := s.Enter(t.Context(), before)
	want(t, err, store.ErrStaleEpoch)
	must(t, s.Move(t.Context(), after, start(store.Started)))
	must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", 6)) // one that comes late spares the new session
	expect(t, s, after, store.Record{Session: "sessions/s1", State: store.Started, Tool: "Bash", Digest: "d1"})
	again := before
	again.Epoch = 6
	expect(t, s, again, store.Record{}) // forgotten
}

func cancelled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Enter(ctx, ref("c1"))
	want(t, err, context.Canceled)
}
