package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testSessions(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a new session has what it was made with", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Title, n.Labels = "a title with \x00 and ü", map[string]string{"team": "x"}
		n.Mounts, n.User, n.Permissions = []*commonv1.Mount{{Name: "books", Path: "a/b", Alias: "mnt/b", Mode: "ro"}, {Name: "drafts", Optional: true}}, "ann", &commonv1.PermissionRules{Ask: []string{"Bash"}}
		n.Messages = []*sessionv1.Message{message(n.Key, "m1", "", "hello")}
		a, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		if a != (store.Answer{Value: "s1"}) {
			t.Errorf("answer %+v", a)
		}
		got := f.session(n.Key)
		want := &sessionv1.Session{
			Name: "sessions/s1", User: "users/ann", Agent: "agents/coder", AgentRevision: "r1", Title: n.Title, Labels: n.Labels, Mounts: n.Mounts, Permissions: n.Permissions,
			LastSeq: 1, Head: "sessions/s1/messages/m1", Usage: &sessionv1.Usage{},
			CreateTime: got.CreateTime, UpdateTime: got.CreateTime, State: sessionv1.SessionState_SESSION_STATE_IDLE,
		}
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		if age := time.Since(got.CreateTime.AsTime()); age < -time.Minute || age > time.Minute {
			t.Errorf("created %s ago", age)
		}
		events, err := f.ListEvents(f.ctx(), n.Key, 0, 10, 0)
		f.must(err)
		if len(events) != 1 || events[0].FirstSeq != 1 || events[0].Seq != 1 || events[0].GetSessionCreated() == nil || !events[0].Time.IsValid() {
			t.Errorf("events %v", events)
		}
		messages, err := f.ListMessages(f.ctx(), n.Key, "", "", 0)
		f.must(err)
		if len(messages) != 1 || messages[0].Name != want.Head {
			t.Errorf("messages %v", messages)
		}
		if n.Event.Seq != 0 || n.Messages[0].CreateTime != nil {
			t.Error("the caller's messages were changed")
		}
	})

	t.Run("a session is its user's", func(t *testing.T) { testOwners(newFixture(t, open)) })

	t.Run("an id is taken once", func(t *testing.T) {
		f := newFixture(t, open)
		f.create(key("s1"))
		if _, err := f.CreateSession(f.ctx(), newSession(key("s1"))); !errors.Is(err, store.ErrExists) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a session that is not there is not found", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("none")
		_, get := f.GetSession(f.ctx(), k)
		_, turn := f.GetTurn(f.ctx(), k, "t")
		_, turns := f.ListTurns(f.ctx(), k, "", 1)
		_, events := f.ListEvents(f.ctx(), k, 0, 1, 0)
		_, messages := f.ListMessages(f.ctx(), k, "", "", 1)
		_, submit := f.Submit(f.ctx(), newTurn(k, "t"))
		_, remove := f.DeleteSession(f.ctx(), k, store.Request{})
		for name, err := range map[string]error{
			"get": get, "get turn": turn, "list turns": turns, "list events": events,
			"list messages": messages, "submit": submit, "delete": remove,
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("pages go from the newest to the oldest", func(t *testing.T) {
		f := newFixture(t, open)
		for _, id := range []string{"b", "a", "d", "c"} {
			n := newSession(key(id))
			if id == "d" {
				n.Agent = "agents/other"
			}
			_, err := f.CreateSession(f.ctx(), n)
			f.must(err)
		}
		all := f.page(store.SessionPage{Tenant: "acme"})
		if !slices.IsSortedFunc(all, func(a, b *sessionv1.Session) int {
			if c := b.CreateTime.AsTime().Compare(a.CreateTime.AsTime()); c != 0 {
				return c
			}
			return strings.Compare(b.Name, a.Name) // of equal times the larger id is first
		}) {
			t.Errorf("order: %v", names(all))
		}
		for size := 1; size <= 5; size++ {
			if got := f.allPages("", size); !slices.Equal(got, names(all)) {
				t.Errorf("pages of %d: %v, want %v", size, got, names(all))
			}
		}
		if got := f.allPages("agents/other", 1); !slices.Equal(got, []string{"sessions/d"}) {
			t.Errorf("of one agent: %v", got)
		}
	})

	t.Run("of sessions as old as each other the larger id comes first", func(t *testing.T) {
		f := newFixture(t, open)
		for _, id := range []string{"b", "a", "c"} {
			f.create(key(id))
		}
		at := f.session(key("b")).CreateTime.AsTime()
		got := names(f.page(store.SessionPage{Tenant: "acme", AfterTime: at, AfterID: "zz"}))
		if !slices.Contains(got, "sessions/b") {
			t.Errorf("behind a larger id at b's time: %v", got)
		}
		got = names(f.page(store.SessionPage{Tenant: "acme", AfterTime: at, AfterID: "b"}))
		if slices.Contains(got, "sessions/b") {
			t.Errorf("behind b: %v", got)
		}
	})
}

func (f *fixture) page(p store.SessionPage) []*sessionv1.Session {
	f.Helper()
	out, err := f.ListSessions(f.ctx(), p)
	f.must(err)
	return out
}

// allPages reads all pages of this size.
func (f *fixture) allPages(agent string, size int) []string {
	f.Helper()
	p := store.SessionPage{Tenant: "acme", Agent: agent, Limit: size}
	var all []string
	for {
		got := f.page(p)
		all = append(all, names(got)...)
		if len(got) < size {
			return all
		}
		last := got[len(got)-1]
		p.AfterTime, p.AfterID = last.CreateTime.AsTime(), strings.TrimPrefix(last.Name, "sessions/")
	}
}

func names[M interface{ GetName() string }](all []M) []string {
	out := make([]string, 0, len(all))
	for _, m := range all {
		out = append(out, m.GetName())
	}
	return out
}

func testDeletion(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("nothing of a deleted session is left", func(t *testing.T) {
		f := newFixture(t, open)
		n := newSession(key("s1"))
		n.Messages = []*sessionv1.Message{message(n.Key, "m1", "", "hello")}
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		turn := newTurn(n.Key, "t1")
		turn.Request = request("turn")
		_, err = f.Submit(f.ctx(), turn)
		f.must(err)
		l := f.claim(n.Key)
		f.commit(start(l, "t1", f.inbox(l)...))
		f.commit(wait(l, "t1", store.PendingCall{CallID: "c", TurnID: "t1", Answer: store.CommandToolResult}))
		f.commit(finish(l, "t1"))

		a, err := f.DeleteSession(f.ctx(), n.Key, store.Request{})
		f.must(err)
		if a.Value != "s1" || a.Replayed {
			t.Errorf("answer %+v", a)
		}
		if _, err := f.GetSession(f.ctx(), n.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get: %v", err)
		}
		f.clean(n.Key)
		f.create(n.Key)
		if turns, err := f.ListTurns(f.ctx(), n.Key, "", 0); err != nil || len(turns) != 0 {
			t.Errorf("turns %v, %v", turns, err)
		}
		if events, err := f.ListEvents(f.ctx(), n.Key, 0, 0, 0); err != nil || len(events) != 1 {
			t.Errorf("events %v, %v", events, err)
		}
		if messages, err := f.ListMessages(f.ctx(), n.Key, "", "", 0); err != nil || len(messages) != 0 {
			t.Errorf("messages %v, %v", messages, err)
		}
		if _, err := f.ListMessages(f.ctx(), n.Key, "m1", "", 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the old message: %v", err)
		}
		a, err = f.Submit(f.ctx(), turn)
		f.must(err)
		if a.Replayed {
			t.Error("the old session's request id was still there")
		}
		_, err = f.Submit(f.ctx(), answerTo(n.Key, store.CommandToolResult, "c", ""))
		if !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("answer to the old call: %v", err)
		}
	})

	t.Run("a holder of the deleted session stays lost when the id is used again", func(t *testing.T) {
		f := newFixture(t, open)
		old := f.active("s1")
		f.commit(finish(old, "t1"))
		_, err := f.DeleteSession(f.ctx(), old.Key, store.Request{})
		f.must(err)
		f.clean(old.Key)
		f.create(old.Key)
		f.submitTurn(old.Key, "t2")
		l := f.claim(old.Key)
		if l.Epoch <= old.Epoch {
			t.Errorf("epoch %d after %d", l.Epoch, old.Epoch)
		}
		if _, err := f.Load(f.ctx(), old); !errors.Is(err, store.ErrStaleEpoch) {
			t.Errorf("load by the old holder: %v", err)
		}
	})

	t.Run("a session with a queued or active turn stays", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		f.submitTurn(k, "t1")
		if _, err := f.DeleteSession(f.ctx(), k, store.Request{}); !errors.Is(err, store.ErrTurnActive) {
			t.Errorf("queued: %v", err)
		}
		l := f.claim(k)
		f.commit(start(l, "t1", f.inbox(l)...))
		if _, err := f.DeleteSession(f.ctx(), k, store.Request{}); !errors.Is(err, store.ErrTurnActive) {
			t.Errorf("active: %v", err)
		}
		f.session(k)
	})

	t.Run("a deletion is answered again, even when the id is used again", func(t *testing.T) {
		f := newFixture(t, open)
		k := f.create(key("s1"))
		r := request("delete")
		_, err := f.DeleteSession(f.ctx(), k, r)
		f.must(err)
		f.clean(k)
		for range 2 {
			a, err := f.DeleteSession(f.ctx(), k, r)
			f.must(err)
			if a != (store.Answer{Value: "s1", Replayed: true}) {
				t.Errorf("answer %+v", a)
			}
			f.CreateSession(f.ctx(), newSession(k)) //nolint:errcheck // the second time it exists
		}
		f.session(k)
		r.Digest = []byte("other")
		if _, err := f.DeleteSession(f.ctx(), k, r); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("other digest: %v", err)
		}
	})

	t.Run("a refused deletion is not remembered", func(t *testing.T) {
		f := newFixture(t, open)
		l := f.active("s1")
		r := request("delete")
		if _, err := f.DeleteSession(f.ctx(), l.Key, r); !errors.Is(err, store.ErrTurnActive) {
			t.Fatal(err)
		}
		f.commit(finish(l, "t1"))
		a, err := f.DeleteSession(f.ctx(), l.Key, r)
		f.must(err)
		if a.Replayed {
			t.Error("replayed")
		}
	})
}

func testOwners(f *fixture) {
	for _, c := range []struct{ session, user string }{{"s1", "ann"}, {"s2", "bob"}, {"s3", "ann"}} {
		n := newSession(key(c.session))
		n.User = c.user
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
	}
	names := func(p store.SessionPage) (out []string) {
		p.Tenant = "acme"
		for _, s := range f.page(p) {
			out = append(out, s.Name)
		}
		return out
	}
	if d := cmp.Diff([]string{"sessions/s3", "sessions/s1"}, names(store.SessionPage{User: "ann", Agent: "agents/coder"})); d != "" {
		f.Error(d)
	}
	last := f.session(key("s3"))
	if d := cmp.Diff([]string{"sessions/s1"}, names(store.SessionPage{User: "ann", AfterTime: last.CreateTime.AsTime(), AfterID: "s3", Limit: 1})); d != "" {
		f.Error(d)
	}
	if got := names(store.SessionPage{User: "zoe"}); len(got) > 0 {
		f.Errorf("zoe has %v", got)
	}
	if owner, err := f.SessionOwner(f.ctx(), key("s2")); err != nil || owner != "bob" {
		f.Errorf("owner %q, %v", owner, err)
	}
	for _, k := range []store.Key{key("none"), {Tenant: "other", Session: "s2"}} {
		if owner, err := f.SessionOwner(f.ctx(), k); !errors.Is(err, store.ErrNotFound) || owner != "" {
			f.Errorf("%v: owner %q, %v", k, owner, err)
		}
	}
}
