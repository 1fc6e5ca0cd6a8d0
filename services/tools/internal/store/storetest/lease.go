package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// long outlasts every test; over has ended at once.
const (
	long = time.Hour
	over = -time.Second
)

var (
	ann = store.Owner{ID: "ann", Address: "10.0.0.1:9191"}
	bob = store.Owner{ID: "bob", Address: "10.0.0.2:9191"}
)

var leases = []testCase{
	{"a started call belongs to who started it", owned},
	{"a live call is not taken over", liveCall},
	{"a call is taken over once its lease has ended", takenOver},
	{"a replica takes up what it let go of itself", ownCall},
	{"a takeover under a stale epoch is refused", staleTakeover},
	{"only a started call is taken over", notStarted},
	{"a lost owner records no result", lostOwner},
	{"a cancellation does not ask for the claim", cancelledByAnybody},
	{"renewal keeps what is held and names what is lost", renewed},
	{"what a replica releases is free at once", released},
}

func started(owner store.Owner, ttl time.Duration) store.Change {
	c := start(store.Started)
	c.Owner, c.TTL = owner, ttl
	return c
}

func enter(t *testing.T, s store.Store, id string) store.Record {
	t.Helper()
	rec, err := s.Enter(t.Context(), ref(id))
	must(t, err)
	return rec
}

func belongs(t *testing.T, s store.Store, id string, owner store.Owner, claim int64, live bool) {
	t.Helper()
	rec := enter(t, s, id)
	want := store.Record{Session: rec.Session, State: rec.State, Tool: rec.Tool, Digest: rec.Digest, Result: rec.Result, Begun: rec.Begun, Owner: owner, Claim: claim, Live: live}
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Fatalf("call %s (-want +got):\n%s", id, diff)
	}
}

func owned(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	belongs(t, s, "c1", ann, 1, true)
	must(t, s.Move(t.Context(), ref("c2"), start(store.Asked)))
	belongs(t, s, "c2", store.Owner{}, 0, false)
	c := started(bob, over)
	c.From = store.Asked
	must(t, s.Move(t.Context(), ref("c2"), c))
	belongs(t, s, "c2", bob, 1, false)
}

func liveCall(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	want(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long), store.ErrConflict)
	belongs(t, s, "c1", ann, 1, true)
}

func takenOver(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, over)))
	want(t, s.TakeOver(t.Context(), ref("c1"), 2, bob, long), store.ErrConflict) // another claim than it has
	must(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long))
	belongs(t, s, "c1", bob, 2, true)
	want(t, s.TakeOver(t.Context(), ref("c1"), 1, ann, long), store.ErrConflict)
	want(t, s.TakeOver(t.Context(), ref("c1"), 2, ann, long), store.ErrConflict)
}

func ownCall(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	must(t, s.TakeOver(t.Context(), ref("c1"), 1, ann, long))
	belongs(t, s, "c1", ann, 2, true)
}

func staleTakeover(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, over)))
	lower := ref("c1")
	lower.Epoch = 2
	want(t, s.TakeOver(t.Context(), lower, 1, bob, long), store.ErrStaleEpoch)
	belongs(t, s, "c1", ann, 1, false)
	must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", store.NoEpoch))
	want(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long), store.ErrStaleEpoch)
}

func notStarted(t *testing.T, s store.Store) {
	want(t, s.TakeOver(t.Context(), ref("c1"), 0, bob, long), store.ErrConflict)
	must(t, s.Move(t.Context(), ref("c1"), start(store.Asked)))
	want(t, s.TakeOver(t.Context(), ref("c1"), 0, bob, long), store.ErrConflict)
	must(t, s.Move(t.Context(), ref("c2"), started(ann, over)))
	must(t, s.Move(t.Context(), ref("c2"), store.Change{From: store.Started, To: store.Finished, Result: []byte("r"), At: at}))
	want(t, s.TakeOver(t.Context(), ref("c2"), 1, bob, long), store.ErrConflict)
}

func lostOwner(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, over)))
	must(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long))
	result := func(claim int64, text string) error {
		return s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, Claim: claim, Result: []byte(text), At: at})
	}
	want(t, result(1, "ann's"), store.ErrConflict)
	must(t, result(2, "bob's"))
	want(t, result(1, "ann's"), store.ErrConflict)
	want(t, result(2, "bob's again"), store.ErrConflict)
	expect(t, s, ref("c1"), store.Record{Session: "sessions/s1", State: store.Finished, Tool: "Bash", Digest: "d1", Result: []byte("bob's")})
}

func cancelledByAnybody(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	must(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Cancelled, Fenced: true, Result: []byte("stop"), At: at}))
	want(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, Claim: 1, Result: []byte("r"), At: at}), store.ErrConflict)
	// A mark from before the call was made refuses its start.
	must(t, s.Move(t.Context(), ref("c2"), store.Change{To: store.Cancelled, Fenced: true, Result: []byte("never"), At: at}))
	want(t, s.Move(t.Context(), ref("c2"), started(ann, long)), store.ErrConflict)
}

func renewed(t *testing.T, s store.Store) {
	for _, id := range []string{"kept", "ended", "taken", "begun"} {
		must(t, s.Move(t.Context(), ref(id), started(ann, over)))
	}
	must(t, s.Move(t.Context(), ref("ended"), store.Change{From: store.Started, To: store.Finished, Claim: 1, At: at}))
	must(t, s.TakeOver(t.Context(), ref("taken"), 1, bob, over))
	held := func(id string) store.Held { return store.Held{Tenant: "acme", CallID: id, Claim: 1} }
	begun := held("begun")
	begun.Begun = true
	other := held("kept")
	other.Tenant = "umbrella"
	lost, err := s.Renew(t.Context(), ann.ID, long, []store.Held{held("kept"), held("ended"), begun, held("taken"), held("unheard"), other})
	must(t, err)
	if diff := cmp.Diff([]store.Held{held("ended"), held("taken"), held("unheard"), other}, lost); diff != "" {
		t.Fatalf("lost (-want +got):\n%s", diff)
	}
	belongs(t, s, "kept", ann, 1, true)
	belongs(t, s, "taken", bob, 2, false)
	if enter(t, s, "kept").Begun || !enter(t, s, "begun").Begun {
		t.Fatal("it is not noted which calls have begun")
	}
	if _, err := s.Renew(t.Context(), ann.ID, long, []store.Held{held("begun")}); err != nil || !enter(t, s, "begun").Begun {
		t.Fatalf("a call that has begun is said not to have: %v", err)
	}
	lost, err = s.Renew(t.Context(), ann.ID, long, nil)
	if err != nil || len(lost) != 0 {
		t.Fatalf("nothing held: got %v, %v", lost, err)
	}
}

func released(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), started(ann, long)))
	must(t, s.Move(t.Context(), ref("c2"), started(bob, long)))
	must(t, s.Release(t.Context(), ann.ID))
	belongs(t, s, "c1", ann, 1, false)
	belongs(t, s, "c2", bob, 1, true)
	must(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long))
}
