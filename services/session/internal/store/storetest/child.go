package storetest

import (
	"errors"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// newChild describes the session of a subagent, with its turn.
func newChild(parent store.Lease, root store.Key, id string, depth int32) store.NewSession {
	n := newSession(key(id))
	first := newTurn(n.Key, "t-"+id)
	first.FromParent = true
	n.First = &first
	n.Request = store.Request{Method: "Task", Parent: "sessions/" + parent.Session, ID: id, Digest: []byte(id)}
	n.Child = &store.Child{
		Parent: parent, Most: 3, Job: store.Job{Tenant: n.Tenant, Kind: store.JobSubagent, ID: id, Session: id},
		Call: &sessionv1.ParentCall{Session: "sessions/" + parent.Session, Root: "sessions/" + root.Session, Depth: depth},
	}
	return n
}

// claimAt claims the sessions of a depth.
func claimAt(f *fixture, depth int) []store.Lease {
	f.Helper()
	leases, err := f.Claim(f.ctx(), store.Claim{Replica: "r", TTL: time.Hour, Depth: depth})
	f.must(err)
	return leases
}

// begun returns the lease of a new session with a turn.
func begun(f *fixture, id string) store.Lease {
	f.Helper()
	k := f.create(key(id))
	_, err := f.Submit(f.ctx(), newTurn(k, "t-"+id))
	f.must(err)
	leases := claimAt(f, 0)
	if len(leases) != 1 {
		f.Fatalf("claimed %v", leases)
	}
	return leases[0]
}

func testChildren(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a child is made once, and only for the holder of its parent", func(t *testing.T) {
		f := newFixture(t, open)
		parent := begun(f, "p")
		stale := parent
		stale.Epoch--
		if _, err := f.CreateSession(f.ctx(), newChild(stale, parent.Key, "c", 1)); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("for a stale holder: %v", err)
		}
		for i := range 2 {
			answer, err := f.CreateSession(f.ctx(), newChild(parent, parent.Key, "c", 1))
			if err != nil || answer.Replayed != (i > 0) {
				t.Errorf("%v, %v", answer, err)
			}
		}
		got, err := f.GetSession(f.ctx(), key("c"))
		f.must(err)
		if got.ParentCall.GetSession() != "sessions/p" || got.ParentCall.Depth != 1 {
			t.Errorf("it is %v", got)
		}
		jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobSubagent}, Tenant: "acme", ID: "c", TTL: time.Hour})
		if err != nil || len(jobs) != 1 {
			t.Errorf("its job: %v, %v", jobs, err)
		}
	})

	t.Run("no more children work below a root than may, at any depth", func(t *testing.T) {
		f := newFixture(t, open)
		root := begun(f, "p")
		for _, id := range []string{"c1", "c2"} {
			_, err := f.CreateSession(f.ctx(), newChild(root, root.Key, id, 1))
			f.must(err)
		}
		children := claimAt(f, 1)
		if len(children) != 2 {
			t.Fatalf("claimed %v", children)
		}
		_, err := f.CreateSession(f.ctx(), newChild(children[0], root.Key, "d1", 2))
		f.must(err)
		if _, err := f.CreateSession(f.ctx(), newChild(root, root.Key, "c3", 1)); !errors.Is(err, store.ErrManySubagents) {
			t.Errorf("a fourth: %v", err)
		}
		if got := claimAt(f, 0); len(got) != 0 {
			t.Errorf("claimed %v among the roots", got)
		}
		if got := claimAt(f, 2); len(got) != 1 || got[0].Session != "d1" {
			t.Errorf("claimed %v", got)
		}
	})

	t.Run("a list has the children of one parent, or none", func(t *testing.T) {
		f := newFixture(t, open)
		root := begun(f, "p")
		_, err := f.CreateSession(f.ctx(), newChild(root, root.Key, "c", 1))
		f.must(err)
		child := claimAt(f, 1)[0]
		_, err = f.CreateSession(f.ctx(), newChild(child, root.Key, "d", 2))
		f.must(err)
		for parent, want := range map[string]string{"": "p", "p": "c", "c": "d"} {
			list, err := f.ListSessions(f.ctx(), store.SessionPage{Tenant: "acme", Parent: parent})
			if err != nil || len(list) != 1 || list[0].Name != "sessions/"+want {
				t.Errorf("%q has %v, %v", parent, list, err)
			}
		}
	})

	t.Run("a child takes what belongs to its turn, and no other turn", func(t *testing.T) {
		f := newFixture(t, open)
		root := begun(f, "p")
		_, err := f.CreateSession(f.ctx(), newChild(root, root.Key, "c", 1))
		f.must(err)
		if _, err := f.Submit(f.ctx(), newTurn(key("c"), "t2")); !errors.Is(err, store.ErrSubagent) {
			t.Errorf("another turn: %v", err)
		}
		answer, err := f.Submit(f.ctx(), store.Submit{Key: key("c"), Command: store.Command{Kind: store.CommandInterrupt}, CancelQueued: true})
		if err != nil || answer.Value != "t-c" {
			t.Errorf("an interrupt stops %q, %v", answer.Value, err)
		}
	})

	t.Run("children are deleted with their root, and not alone", func(t *testing.T) {
		f := newFixture(t, open)
		root := begun(f, "p")
		_, err := f.CreateSession(f.ctx(), newChild(root, root.Key, "c", 1))
		f.must(err)
		endTurn(f, root, "t-p")
		if _, err := f.DeleteSession(f.ctx(), key("p"), store.Request{}); !errors.Is(err, store.ErrTurnActive) {
			t.Errorf("while the child works: %v", err)
		}
		if gone, err := f.DeleteIdle(f.ctx(), 0, 0); err != nil || len(gone) != 0 {
			t.Errorf("while the child works: %v, %v", gone, err)
		}
		endTurn(f, claimAt(f, 1)[0], "t-c")
		if _, err := f.DeleteSession(f.ctx(), key("c"), store.Request{}); !errors.Is(err, store.ErrSubagent) {
			t.Errorf("the child alone: %v", err)
		}
		_, err = f.DeleteSession(f.ctx(), key("p"), store.Request{})
		f.must(err)
		for _, id := range []string{"p", "c"} {
			if _, err := f.GetSession(f.ctx(), key(id)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s is left: %v", id, err)
			}
			f.claimDelete(key(id))
		}
	})
}

// end ends the only turn of a session, and empties its inbox.
func endTurn(f *fixture, l store.Lease, turn string) {
	f.Helper()
	loaded, err := f.Load(f.ctx(), l)
	f.must(err)
	none := ""
	w := store.Write{Lease: l, LastSeq: loaded.Session.LastSeq, ActiveTurn: &none, Turns: []*store.TurnRow{{
		ID: turn, Turn: &sessionv1.Turn{Name: turnName(l.Key, turn), State: sessionv1.TurnState_TURN_STATE_COMPLETE},
	}}}
	for _, c := range loaded.Commands {
		w.Consume = append(w.Consume, c.ID)
	}
	errs, err := f.Commit(f.ctx(), []store.Write{w})
	f.must(errors.Join(err, errs[0]))
	_, err = f.ReleaseIdle(f.ctx(), l)
	f.must(err)
}
