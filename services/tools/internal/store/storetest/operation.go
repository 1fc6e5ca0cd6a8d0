package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var operations = []testCase{
	{"an operation begins with the result that hands it back, or not at all", handedBack},
	{"texts of the model's are kept as far as a column takes them", strangeTexts},
	{"an operation is watched by one replica at a time", watched},
	{"a note of a lost watcher is refused", lostWatcher},
	{"an operation ends once and is kept for a while", endsOnce},
	{"operations are listed by page, the newest first", listed},
	{"a reader goes on where the one before stopped", read},
	{"a request to stop is noted once", stopped},
	{"a session's operations are deleted with it", deletedOperations},
}

func key(id string) store.OperationKey { return store.OperationKey{Tenant: "acme", ID: id} }

func handBack(claim int64, ttl time.Duration) store.Change {
	return store.Change{
		From: store.Started, To: store.Finished, Claim: claim, Result: []byte("r"), At: at,
		Operation: &store.NewOperation{User: "ann", Tool: "Bash", Progress: "make", TTL: ttl},
	}
}

// operation makes a running operation.
func operation(t *testing.T, s store.Store, r store.Ref) store.Operation {
	t.Helper()
	must(t, s.Move(t.Context(), r, started(ann, long)))
	must(t, s.Move(t.Context(), r, handBack(1, long)))
	o, err := s.GetOperation(t.Context(), store.OperationKey{Tenant: r.Tenant, ID: r.CallID})
	must(t, err)
	return o
}

func watch(t *testing.T, s store.Store, owner store.Owner, ttl time.Duration) map[string]int64 {
	t.Helper()
	found, err := s.WatchOperations(t.Context(), owner.ID, ttl, 100)
	must(t, err)
	claims := map[string]int64{}
	for _, o := range found {
		claims[o.ID] = o.Claim
	}
	return claims
}

func handedBack(t *testing.T, s store.Store) {
	_, err := s.GetOperation(t.Context(), key("c1"))
	want(t, err, store.ErrNoOperation)
	must(t, s.Move(t.Context(), ref("c1"), started(ann, over)))
	must(t, s.TakeOver(t.Context(), ref("c1"), 1, bob, long))
	want(t, s.Move(t.Context(), ref("c1"), handBack(1, long)), store.ErrConflict)
	_, err = s.GetOperation(t.Context(), key("c1"))
	want(t, err, store.ErrNoOperation)
	must(t, s.Move(t.Context(), ref("c1"), handBack(2, long)))
	o, err := s.GetOperation(t.Context(), key("c1"))
	must(t, err)
	if o.ExpireTime.Sub(o.CreateTime) < long || o.CreateTime.IsZero() || !o.EndTime.IsZero() {
		t.Errorf("times: %v, %v, %v", o.CreateTime, o.EndTime, o.ExpireTime)
	}
	o.CreateTime, o.ExpireTime, o.Head, o.Tail = time.Time{}, time.Time{}, nil, nil
	wanted := store.Operation{OperationKey: key("c1"), User: "ann", Session: "sessions/s1", Tool: "Bash", Progress: "make", State: store.Running}
	if diff := cmp.Diff(wanted, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = s.GetOperation(t.Context(), store.OperationKey{Tenant: "umbrella", ID: "c1"})
	want(t, err, store.ErrNoOperation)
}

func watched(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	if diff := cmp.Diff(map[string]int64{"c1": 1}, watch(t, s, ann, long)); diff != "" {
		t.Fatalf("ann (-want +got):\n%s", diff)
	}
	if got := watch(t, s, bob, long); len(got) != 0 {
		t.Fatalf("bob watches what ann does: %v", got)
	}
	if got := watch(t, s, ann, over); got["c1"] != 1 {
		t.Fatalf("ann's renewal: %v", got)
	}
	if diff := cmp.Diff(map[string]int64{"c1": 2}, watch(t, s, bob, long)); diff != "" {
		t.Fatalf("bob (-want +got):\n%s", diff)
	}
	if got := watch(t, s, ann, long); len(got) != 0 {
		t.Fatalf("ann goes on: %v", got)
	}
	must(t, s.Release(t.Context(), bob.ID))
	if got := watch(t, s, ann, long); got["c1"] != 3 {
		t.Fatalf("after the release: %v", got)
	}
	for i := range 3 {
		operation(t, s, ref(fmt.Sprint("more", i)))
	}
	found, err := s.WatchOperations(t.Context(), bob.ID, long, 2)
	if err != nil || len(found) != 2 {
		t.Fatalf("got %d operations, %v, want the limit of 2", len(found), err)
	}
}

func lostWatcher(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	watch(t, s, ann, over)
	watch(t, s, bob, long)
	note := store.OperationNote{OperationKey: key("c1"), Claim: 1, State: store.Running, Head: []byte("ann's"), Bytes: 5}
	want(t, s.NoteOperation(t.Context(), note), store.ErrConflict)
	note.Claim, note.Head, note.Tail = 2, []byte("bob's\x00\xff"), []byte("end")
	must(t, s.NoteOperation(t.Context(), note))
	o, err := s.GetOperation(t.Context(), key("c1"))
	must(t, err)
	if string(o.Head) != "bob's\x00\xff" || string(o.Tail) != "end" || o.Bytes != 5 || o.State != store.Running || !o.EndTime.IsZero() {
		t.Errorf("got %+v", o)
	}
}

func endsOnce(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	watch(t, s, ann, long)
	code := int32(3)
	end := store.OperationNote{OperationKey: key("c1"), Claim: 1, State: store.Failed, ExitCode: &code, Content: []byte("text"), Keep: long}
	must(t, s.NoteOperation(t.Context(), end))
	end.State, end.Keep = store.Succeeded, over
	want(t, s.NoteOperation(t.Context(), end), store.ErrConflict)
	o, err := s.GetOperation(t.Context(), key("c1"))
	must(t, err)
	if o.State != store.Failed || o.ExitCode == nil || *o.ExitCode != 3 || string(o.Content) != "text" || o.EndTime.IsZero() || o.Overdue {
		t.Errorf("got %+v", o)
	}
	if got := watch(t, s, ann, long); len(got) != 0 {
		t.Errorf("it is still watched: %v", got)
	}
	expired, err := s.ExpiredOperations(t.Context(), 10)
	if err != nil || len(expired) != 0 {
		t.Fatalf("expired at once: %v, %v", expired, err)
	}
	operation(t, s, ref("c2"))
	watch(t, s, ann, long)
	must(t, s.DeleteOperation(t.Context(), key("c2"))) // it runs: it stays
	must(t, s.NoteOperation(t.Context(), store.OperationNote{OperationKey: key("c2"), Claim: 1, State: store.Unknown, Keep: over}))
	expired, err = s.ExpiredOperations(t.Context(), 10)
	if err != nil || len(expired) != 1 || expired[0].ID != "c2" || !expired[0].Overdue {
		t.Fatalf("expired: %v, %v", expired, err)
	}
	for range 2 {
		must(t, s.DeleteOperation(t.Context(), key("c2")))
	}
	_, err = s.GetOperation(t.Context(), key("c2"))
	want(t, err, store.ErrNoOperation)
}

func listed(t *testing.T, s store.Store) {
	for i := range 5 {
		r := ref(fmt.Sprint("c", i))
		if i == 3 {
			r.Session = "sessions/s2"
		}
		operation(t, s, r)
	}
	other := ref("x")
	other.Tenant = "umbrella"
	operation(t, s, other)
	watch(t, s, ann, long)
	must(t, s.NoteOperation(t.Context(), store.OperationNote{OperationKey: key("c1"), Claim: 1, State: store.Succeeded, Keep: long}))
	for _, c := range []struct {
		name string
		page store.OperationPage
		want []string
	}{
		{"all", store.OperationPage{}, []string{"c4", "c3", "c2", "c1", "c0"}},
		{"a user's", store.OperationPage{User: "ann"}, []string{"c4", "c3", "c2", "c1", "c0"}},
		{"another user's", store.OperationPage{User: "bob"}, nil},
		{"a session's", store.OperationPage{Session: "sessions/s1"}, []string{"c4", "c2", "c1", "c0"}},
		{"a session's that run", store.OperationPage{Session: "sessions/s1", Running: true}, []string{"c4", "c2", "c0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.page.Tenant, c.page.Limit = "acme", 2
			for {
				found, err := s.ListOperations(t.Context(), c.page)
				must(t, err)
				for _, o := range found {
					got = append(got, o.ID)
				}
				if len(found) < 2 {
					break
				}
				c.page.Before = &store.OperationCursor{CreateTime: found[1].CreateTime, ID: found[1].ID}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	watch(t, s, ann, long)
	place := func(call string, wanted int64) {
		t.Helper()
		o, from, err := s.ReadOperation(t.Context(), key("c1"), call)
		must(t, err)
		if from != wanted || o.ID != "c1" {
			t.Fatalf("%s reads from %d, want %d", call, from, wanted)
		}
	}
	grow := func(n int64) {
		t.Helper()
		must(t, s.NoteOperation(t.Context(), store.OperationNote{OperationKey: key("c1"), Claim: 1, State: store.Running, Bytes: n}))
	}
	grow(5)
	place("r1", 0)
	grow(9)
	place("r1", 0) // the same call, made again
	place("r2", 9)
	place("r3", 9)
	_, _, err := s.ReadOperation(t.Context(), key("none"), "r1")
	want(t, err, store.ErrNoOperation)
}

func stopped(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	operation(t, s, ref("c2"))
	watch(t, s, ann, long)
	must(t, s.NoteOperation(t.Context(), store.OperationNote{OperationKey: key("c2"), Claim: 1, State: store.Succeeded, Keep: long}))
	q := &store.Request{Tenant: "acme", Method: "Cancel", ID: "k1", Digest: []byte("c1"), Keep: long}
	for range 2 {
		o, err := s.StopOperation(t.Context(), key("c1"), q)
		must(t, err)
		if !o.Stopping || o.State != store.Running {
			t.Fatalf("got %+v", o)
		}
	}
	other := *q
	other.Digest = []byte("c2")
	_, err := s.StopOperation(t.Context(), key("c2"), &other)
	want(t, err, store.ErrRequestReused)
	o, err := s.StopOperation(t.Context(), key("c2"), nil)
	if err != nil || o.Stopping || o.State != store.Succeeded {
		t.Fatalf("one that has ended: %+v, %v", o, err)
	}
	_, err = s.StopOperation(t.Context(), key("none"), &store.Request{Tenant: "acme", Method: "Cancel", ID: "k2", Digest: []byte("x"), Keep: over})
	want(t, err, store.ErrNoOperation)
	must(t, s.Sweep(t.Context()))
	_, err = s.StopOperation(t.Context(), key("c2"), &other) // the key is kept
	want(t, err, store.ErrRequestReused)
	q.ID, q.Keep = "k3", over
	_, err = s.StopOperation(t.Context(), key("c1"), q)
	must(t, err)
	must(t, s.Sweep(t.Context()))
	q.Digest = []byte("other")
	_, err = s.StopOperation(t.Context(), key("c1"), q) // the key was forgotten
	must(t, err)
}

func deletedOperations(t *testing.T, s store.Store) {
	operation(t, s, ref("c1"))
	other := ref("c2")
	other.Session = "sessions/s2"
	operation(t, s, other)
	must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", store.NoEpoch))
	for range 2 {
		must(t, s.DeleteOperations(t.Context(), "acme", "sessions/s1"))
	}
	_, err := s.GetOperation(t.Context(), key("c1"))
	want(t, err, store.ErrNoOperation)
	_, err = s.GetOperation(t.Context(), key("c2"))
	must(t, err)
}
