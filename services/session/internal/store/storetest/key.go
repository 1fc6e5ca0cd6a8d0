package storetest

import (
	"errors"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// made creates a key that another key has made.
func (f identities) made(o store.Owner, parent, id string) {
	f.Helper()
	n := newKey(o, id)
	n.Parent = parent
	f.key(n)
}

// usable returns which of the keys can be used.
func (f identities) usable(ids ...string) (all []string) {
	f.Helper()
	for _, id := range ids {
		if _, err := f.ResolveKey(f.ctx(), hashOf(id)); err == nil {
			all = append(all, id)
		} else if !errors.Is(err, store.ErrNotFound) {
			f.Fatal(err)
		}
	}
	return all
}

// revoke revokes a key and returns which others ended.
func (f identities) revoke(id string) []string {
	f.Helper()
	_, err := f.RevokeKey(f.ctx(), "acme", id, store.Request{})
	f.must(err)
	k, err := f.GetKey(f.ctx(), "acme", id)
	f.must(err)
	ended, err := f.RevokedKeys(f.ctx(), store.Revocation{Owner: store.Owner{Tenant: "acme"}, Key: id, Since: k.RevokeTime.AsTime()})
	f.must(err)
	return ended
}

func testDescendants(f identities) {
	f.tenant("acme")
	f.tenant("globex")
	root, ann := store.Owner{Tenant: "acme", User: "root"}, store.Owner{Tenant: "acme", User: "ann"}
	f.user(ann, commonv1.Role_ROLE_USER)
	f.made(root, "first-acme", "a")
	f.made(ann, "a", "of-ann")
	deep := []string{"of-ann"}
	for range 20 {
		id := f.nextID("deep")
		f.made(root, deep[len(deep)-1], id)
		deep = append(deep, id)
	}
	f.made(ann, "first-acme", "other")
	f.key(newKey(ann, "alone"))
	f.made(store.Owner{Tenant: "globex", User: "root"}, "first-globex", "globex")
	foreign := newKey(ann, "foreign")
	foreign.Parent = "first-globex"
	if _, err := f.CreateKey(f.ctx(), foreign); !errors.Is(err, store.ErrParent) {
		f.Errorf("made by another tenant's key: %v", err)
	}
	if k, err := f.GetKey(f.ctx(), "acme", "of-ann"); err != nil || k.Parent != "keys/a" {
		f.Errorf("%v, %v", k, err)
	}
	all := append([]string{"first-acme", "a", "other", "alone", "globex"}, deep...)
	if d := cmp.Diff(all, f.usable(all...)); d != "" {
		f.Fatal(d)
	}
	ended := f.revoke("of-ann")
	slices.Sort(ended)
	want := slices.Clone(deep[1:])
	slices.Sort(want)
	if d := cmp.Diff(want, ended); d != "" {
		f.Error(d)
	}
	if d := cmp.Diff([]string{"first-acme", "a", "other", "alone", "globex"}, f.usable(all...)); d != "" {
		f.Error(d)
	}
	again := newKey(ann, "again")
	again.Parent = deep[3]
	if _, err := f.CreateKey(f.ctx(), again); !errors.Is(err, store.ErrParent) {
		f.Errorf("made by a key that was revoked: %v", err)
	}
	if d := cmp.Diff([]string{"a", "other"}, f.revoke("first-acme")); d != "" {
		f.Errorf("what was revoked before, or what stayed, counts: %s", d)
	}
	if d := cmp.Diff([]string{"alone", "globex"}, f.usable(all...)); d != "" {
		f.Error(d)
	}
	if ended := f.revoke("alone"); len(ended) > 0 {
		f.Errorf("a key without descendants ended %v", ended)
	}
}

func testDescendantsOfAUser(f identities) {
	f.tenant("acme")
	root, ann, bob := store.Owner{Tenant: "acme", User: "root"}, store.Owner{Tenant: "acme", User: "ann"}, store.Owner{Tenant: "acme", User: "bob"}
	f.user(ann, commonv1.Role_ROLE_ADMIN)
	f.user(bob, commonv1.Role_ROLE_USER)
	f.made(ann, "first-acme", "ann")
	f.made(ann, "first-acme", "ann-2")
	f.made(ann, "first-acme", "before")
	f.revoke("before")
	f.made(bob, "ann", "bob")
	f.made(root, "bob", "root")
	f.made(bob, "first-acme", "stays")
	_, err := f.DisableUser(f.ctx(), ann, store.Request{})
	f.must(err)
	if d := cmp.Diff([]string{"stays", "first-acme"}, f.usable("ann", "ann-2", "bob", "root", "stays", "first-acme")); d != "" {
		f.Error(d)
	}
	u, err := f.GetUser(f.ctx(), ann)
	f.must(err)
	ended, err := f.RevokedKeys(f.ctx(), store.Revocation{Owner: ann, Since: u.UpdateTime.AsTime(), Limit: 3})
	if d := cmp.Diff([]string{"ann", "ann-2", "bob"}, ended); err != nil || d != "" {
		f.Errorf("%v %s", err, d)
	}
}

func testRevokedMeanwhile(f identities) {
	f.tenant("acme")
	root := store.Owner{Tenant: "acme", User: "root"}
	f.made(root, "first-acme", "parent")
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = f.nextID("k")
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			n := newKey(root, id)
			n.Parent = "parent"
			if i > 0 && i%3 == 0 {
				n.Parent = ids[i-1]
			}
			if _, err := f.CreateKey(f.ctx(), n); err != nil && !errors.Is(err, store.ErrParent) {
				f.Error(err)
			}
		})
		if i == len(ids)/2 {
			wg.Go(func() { f.revoke("parent") })
		}
	}
	wg.Wait()
	if left := f.usable(ids...); len(left) > 0 {
		f.Errorf("%v outlive their parent", left)
	}
}
