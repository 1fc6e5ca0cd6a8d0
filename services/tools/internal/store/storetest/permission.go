package storetest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var permissions = []testCase{
	{"a call keeps the arguments that a person put in place of the model's", editedArguments},
	{"a grant is stored with the start of its call, or not at all", grantWithStart},
	{"a repeated grant is one grant", grantTwice},
	{"a grant with another binding is another grant", boundGrants},
	{"grants are listed by page, the newest first", listedGrants},
	{"a grant is deleted by its user, and once", deletedGrant},
	{"grants are deleted with their session and their user", deletedWithOthers},
	{"a profile is written, read and deleted", writtenProfile},
	{"a profile that was changed meanwhile is not overwritten", changedProfile},
	{"a repeated request for a profile changes nothing", repeatedProfile},
	{"each change of a tenant's permissions raises its version", raisedVersion},
}

func give(s store.Store, id, user, session, rule string) error {
	g := &store.Grant{
		Tenant: "acme", ID: store.GrantID(user, session, "work", rule, ""), User: user, Session: session, Profile: "work", Rule: rule, Approver: "ann", CallID: id,
	}
	c := start(store.Started)
	c.Grant = g
	return s.Move(context.Background(), ref(id), c)
}

func rules(t *testing.T, s store.Store, p store.GrantPage) []string {
	t.Helper()
	p.Tenant = "acme"
	if p.Limit == 0 {
		p.Limit = 100
	}
	found, err := s.ListGrants(t.Context(), p)
	must(t, err)
	all := make([]string, len(found))
	for i, g := range found {
		all[i] = g.Rule
	}
	return all
}

func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func version(t *testing.T, s store.Store) int64 {
	t.Helper()
	v, err := s.PermissionVersion(t.Context(), "acme")
	must(t, err)
	return v
}

func editedArguments(t *testing.T, s store.Store) {
	must(t, s.Move(t.Context(), ref("c1"), start(store.Asked)))
	c := start(store.Started)
	c.From, c.Arguments = store.Asked, []byte(`{"a":1}`)
	must(t, s.Move(t.Context(), ref("c1"), c))
	r := store.Record{Session: "sessions/s1", State: store.Started, Tool: "Bash", Digest: "d1", Arguments: c.Arguments}
	expect(t, s, ref("c1"), r)
	must(t, s.Move(t.Context(), ref("c1"), store.Change{From: store.Started, To: store.Finished, Result: []byte("r"), At: at}))
	r.State, r.Result = store.Finished, []byte("r")
	expect(t, s, ref("c1"), r)
	c.From = store.None
	must(t, s.Move(t.Context(), ref("c2"), c))
	expect(t, s, ref("c2"), store.Record{Session: "sessions/s1", State: store.Started, Tool: "Bash", Digest: "d1", Arguments: c.Arguments})
}

func grantWithStart(t *testing.T, s store.Store) {
	must(t, give(s, "c1", "bob", "sessions/s1", "Bash(git *)"))
	want(t, give(s, "c1", "bob", "sessions/s1", "Bash(rm *)"), store.ErrConflict)
	stale := start(store.Started)
	stale.Grant = &store.Grant{Tenant: "acme", ID: "g1", User: "bob", Profile: "work", Rule: "Bash"}
	old := ref("c2")
	old.Epoch--
	want(t, s.Move(t.Context(), old, stale), store.ErrStaleEpoch)
	found, err := s.ListGrants(t.Context(), store.GrantPage{Tenant: "acme", Limit: 10})
	must(t, err)
	if len(found) != 1 || found[0].CreateTime.IsZero() {
		t.Fatalf("got %+v", found)
	}
	g := store.Grant{
		Tenant: "acme", ID: store.GrantID("bob", "sessions/s1", "work", "Bash(git *)", ""), User: "bob", Session: "sessions/s1", Profile: "work",
		Rule: "Bash(git *)", Approver: "ann", CallID: "c1", CreateTime: found[0].CreateTime,
	}
	same(t, g, found[0])
}

func grantTwice(t *testing.T, s store.Store) {
	must(t, give(s, "c1", "bob", "", "Bash(git *)"))
	must(t, give(s, "c2", "bob", "", "Bash(git *)"))
	must(t, give(s, "c3", "eve", "", "Bash(git *)"))
	must(t, give(s, "c4", "bob", "sessions/s1", "Bash(git *)"))
	if got := rules(t, s, store.GrantPage{}); len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

func boundGrants(t *testing.T, s store.Store) {
	for i, binding := range []string{"server=1,description=2", "server=1,description=3", "server=1,description=2"} {
		change := start(store.Started)
		change.Grant = &store.Grant{
			Tenant: "acme", ID: store.GrantID("bob", "", "work", "mcp__a__b", binding), User: "bob", Profile: "work", Rule: "mcp__a__b", Approver: "ann", Binding: binding,
		}
		must(t, s.Move(t.Context(), ref("c"+strconv.Itoa(i)), change))
	}
	found, err := s.ListGrants(t.Context(), store.GrantPage{Tenant: "acme", Limit: 10})
	must(t, err)
	if len(found) != 2 || found[0].Binding != "server=1,description=3" || found[1].Binding != "server=1,description=2" {
		t.Errorf("got %+v", found)
	}
}

func listedGrants(t *testing.T, s store.Store) {
	for _, g := range [][3]string{{"bob", "", "1"}, {"eve", "sessions/s1", "2"}, {"bob", "sessions/s1", "3"}, {"bob", "sessions/s2", "4"}} {
		must(t, give(s, "c"+g[2], g[0], g[1], g[2]))
	}
	same(t, []string{"4", "3", "2", "1"}, rules(t, s, store.GrantPage{}))
	same(t, []string{"4", "3", "1"}, rules(t, s, store.GrantPage{User: "bob"}))
	same(t, []string{"3", "2"}, rules(t, s, store.GrantPage{Session: "sessions/s1"}))
	same(t, []string{"3", "1"}, rules(t, s, store.GrantPage{User: "bob", Session: "sessions/s1", Holding: true}))
	same(t, []string{"1"}, rules(t, s, store.GrantPage{User: "bob", Holding: true}))
	first, err := s.ListGrants(t.Context(), store.GrantPage{Tenant: "acme", Limit: 2})
	must(t, err)
	same(t, []string{"2", "1"}, rules(t, s, store.GrantPage{Before: &store.GrantCursor{CreateTime: first[1].CreateTime, ID: first[1].ID}}))
	others, err := s.ListGrants(t.Context(), store.GrantPage{Tenant: "other", Limit: 10})
	must(t, err)
	same(t, nil, others)
}

func deletedGrant(t *testing.T, s store.Store) {
	must(t, give(s, "c1", "bob", "", "Bash(git *)"))
	must(t, give(s, "c2", "bob", "", "Bash(ls *)"))
	id, other := store.GrantID("bob", "", "work", "Bash(git *)", ""), store.GrantID("bob", "", "work", "Bash(ls *)", "")
	q := &store.Request{Tenant: "acme", Method: "DeleteGrant", ID: "r1", Digest: []byte("d"), Keep: time.Hour}
	want(t, s.DeleteGrant(t.Context(), "acme", id, "eve", nil), store.ErrNoGrant)
	want(t, s.DeleteGrant(t.Context(), "other", id, "bob", nil), store.ErrNoGrant)
	must(t, s.DeleteGrant(t.Context(), "acme", id, "bob", q))
	must(t, s.DeleteGrant(t.Context(), "acme", id, "bob", q))
	want(t, s.DeleteGrant(t.Context(), "acme", id, "bob", nil), store.ErrNoGrant)
	must(t, s.DeleteGrant(t.Context(), "acme", other, "", nil))
	same(t, nil, rules(t, s, store.GrantPage{}))
}

func deletedWithOthers(t *testing.T, s store.Store) {
	must(t, give(s, "c1", "bob", "sessions/s1", "1"))
	must(t, give(s, "c2", "bob", "sessions/s2", "2"))
	must(t, give(s, "c3", "bob", "", "3"))
	must(t, give(s, "c4", "eve", "", "4"))
	must(t, s.DeleteSession(t.Context(), "acme", "sessions/s1", 9))
	must(t, s.DeleteSession(t.Context(), "other", "sessions/s2", 9))
	same(t, []string{"4", "3", "2"}, rules(t, s, store.GrantPage{}))
	must(t, s.DeleteGrants(t.Context(), "acme", "bob"))
	must(t, s.DeleteGrants(t.Context(), "acme", "bob"))
	same(t, []string{"4"}, rules(t, s, store.GrantPage{}))
}

func write(id, etag string) store.ProfileWrite {
	return store.ProfileWrite{Profile: store.Profile{Tenant: "acme", ID: id, Description: "about " + id, Rules: []byte{1, 0, 2}, Etag: etag}}
}

func created(t *testing.T, s store.Store, id, etag string) {
	t.Helper()
	w := write(id, etag)
	w.Create = true
	_, err := s.WriteProfile(t.Context(), w)
	must(t, err)
}

func writtenProfile(t *testing.T, s store.Store) {
	_, err := s.GetProfile(t.Context(), "acme", "a")
	want(t, err, store.ErrNoProfile)
	_, err = s.WriteProfile(t.Context(), write("a", "1"))
	want(t, err, store.ErrNoProfile)
	for _, id := range []string{"b", "a", "c"} {
		created(t, s, id, "1")
	}
	got, err := s.GetProfile(t.Context(), "acme", "a")
	must(t, err)
	if got.CreateTime.IsZero() || got.UpdateTime.Before(got.CreateTime) {
		t.Errorf("got %+v", got)
	}
	expected := write("a", "1").Profile
	expected.CreateTime, expected.UpdateTime = got.CreateTime, got.UpdateTime
	same(t, expected, got)
	_, err = s.GetProfile(t.Context(), "other", "a")
	want(t, err, store.ErrNoProfile)
	found, err := s.ListProfiles(t.Context(), "acme", "a", 1)
	must(t, err)
	if len(found) != 1 || found[0].ID != "b" {
		t.Errorf("got %+v", found)
	}
	must(t, s.DeleteProfile(t.Context(), write("a", "")))
	want(t, s.DeleteProfile(t.Context(), write("a", "")), store.ErrNoProfile)
	_, err = s.GetProfile(t.Context(), "acme", "a")
	want(t, err, store.ErrNoProfile)
}

func changedProfile(t *testing.T, s store.Store) {
	created(t, s, "a", "1")
	w := write("a", "2")
	w.Create = true
	_, err := s.WriteProfile(t.Context(), w)
	want(t, err, store.ErrProfileExists)
	w.Create, w.Expected, w.Description = false, "1", "other"
	got, err := s.WriteProfile(t.Context(), w)
	must(t, err)
	if got.Description != "other" || got.Etag != "2" {
		t.Errorf("got %+v", got)
	}
	w.Etag = "3"
	_, err = s.WriteProfile(t.Context(), w)
	want(t, err, store.ErrProfileChanged)
	want(t, s.DeleteProfile(t.Context(), w), store.ErrProfileChanged)
	w.Expected = "2"
	must(t, s.DeleteProfile(t.Context(), w))
}

func repeatedProfile(t *testing.T, s store.Store) {
	w := write("a", "1")
	w.Create, w.Request = true, &store.Request{Tenant: "acme", Method: "CreateProfile", ID: "r1", Digest: []byte("d"), Keep: time.Hour}
	_, err := s.WriteProfile(t.Context(), w)
	must(t, err)
	w.Etag = "2"
	got, err := s.WriteProfile(t.Context(), w)
	must(t, err)
	if got.Etag != "1" {
		t.Errorf("the repeated request wrote %+v", got)
	}
	other := *w.Request
	other.Digest = []byte("e")
	w.Request = &other
	_, err = s.WriteProfile(t.Context(), w)
	want(t, err, store.ErrRequestReused)
	w.Request = &store.Request{Tenant: "acme", Method: "DeleteProfile", ID: "r1", Digest: []byte("d"), Keep: time.Hour}
	must(t, s.DeleteProfile(t.Context(), w))
	must(t, s.DeleteProfile(t.Context(), w))
}

func raisedVersion(t *testing.T, s store.Store) {
	entered := func() int64 {
		r, err := s.Enter(t.Context(), ref("c9"))
		must(t, err)
		return r.Permissions
	}
	if version(t, s) != 0 || entered() != 0 {
		t.Error("the version of an empty store is not 0")
	}
	last := int64(0)
	for i, change := range []func() error{
		func() error { return give(s, "c1", "bob", "sessions/s1", "1") },
		func() error { return give(s, "c9", "bob", "", "2") },
		func() error { created(t, s, "a", "1"); return nil },
		func() error { _, err := s.WriteProfile(t.Context(), write("a", "2")); return err },
		func() error { return s.DeleteProfile(t.Context(), write("a", "")) },
		func() error {
			return s.DeleteGrant(t.Context(), "acme", store.GrantID("bob", "", "work", "2", ""), "bob", nil)
		},
		func() error { return s.DeleteSession(t.Context(), "acme", "sessions/s1", 3) },
		func() error { return s.DeleteGrants(t.Context(), "acme", "bob") },
	} {
		must(t, change())
		if now := version(t, s); now <= last || entered() != now {
			t.Errorf("change %d: the version was %d and is %d", i, last, now)
		}
		last = version(t, s)
	}
	if v, err := s.PermissionVersion(t.Context(), "other"); v != 0 || err != nil {
		t.Errorf("another tenant: %d, %v", v, err)
	}
}
