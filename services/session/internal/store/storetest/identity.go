package storetest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func hashOf(id string) []byte { return append(bytes.Repeat([]byte{7}, 32-len(id)), id...) }

func newKey(o store.Owner, id string) store.NewKey {
	return store.NewKey{Owner: o, ID: id, Title: "for " + id, Hash: hashOf(id), Most: commonv1.Role_ROLE_ADMIN, Creator: "root"}
}

// identities is a fixture for tenants, users and keys.
type identities struct{ *fixture }

func (f identities) tenant(id string) {
	f.Helper()
	_, err := f.CreateTenant(f.ctx(), store.NewTenant{
		ID: id, Title: "title of " + id, Admin: "root", By: store.SystemTenant,
		Key: store.NewKey{ID: "first-" + id, Hash: hashOf("first-" + id), Role: commonv1.Role_ROLE_ADMIN, Creator: "root"},
	})
	f.must(err)
}

func (f identities) user(o store.Owner, r commonv1.Role) {
	f.Helper()
	_, err := f.CreateUser(f.ctx(), store.NewUser{Owner: o, Title: "title of " + o.User, Role: r})
	f.must(err)
}

func (f identities) key(n store.NewKey) {
	f.Helper()
	_, err := f.CreateKey(f.ctx(), n)
	f.must(err)
}

// refused fails the test unless the key is not valid.
func (f identities) refused(id, why string) {
	f.Helper()
	if r, err := f.ResolveKey(f.ctx(), hashOf(id)); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("%s: %+v, %v", why, r, err)
	}
}

func (f identities) keysOf(p store.KeyPage) []string {
	f.Helper()
	all, err := f.ListKeys(f.ctx(), p)
	f.must(err)
	ids := make([]string, len(all))
	for i, k := range all {
		ids[i] = k.Name
	}
	return ids
}

func testIdentities(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("the default tenant and user exist, and no key", func(t *testing.T) { testFirstIdentity(identities{newFixture(t, open)}) })
	t.Run("a tenant comes with its admin and a key", func(t *testing.T) { testTenantRow(identities{newFixture(t, open)}) })
	t.Run("a user is created, changed, disabled and enabled", func(t *testing.T) { testUserRow(identities{newFixture(t, open)}) })
	t.Run("a key has the lower role", func(t *testing.T) { testKeyRoles(identities{newFixture(t, open)}) })
	t.Run("a key ends", func(t *testing.T) { testKeyEnds(identities{newFixture(t, open)}) })
	t.Run("a key ends with the key that made it", func(t *testing.T) { testDescendants(identities{newFixture(t, open)}) })
	t.Run("the keys of a disabled user end what they have made", func(t *testing.T) { testDescendantsOfAUser(identities{newFixture(t, open)}) })
	t.Run("no key is made while its parent is revoked", func(t *testing.T) { testRevokedMeanwhile(identities{newFixture(t, open)}) })
	t.Run("keys are listed, the newest first", func(t *testing.T) { testListKeys(identities{newFixture(t, open)}) })
	t.Run("the last use of a key only grows", func(t *testing.T) { testKeysUsed(identities{newFixture(t, open)}) })
	t.Run("keys are bounded, also when many come at once", func(t *testing.T) { testManyKeys(identities{newFixture(t, open)}) })
}

func testFirstIdentity(f identities) {
	u, err := f.GetUser(f.ctx(), store.Owner{Tenant: store.SystemTenant, User: "default"})
	f.must(err)
	if u.Role != commonv1.Role_ROLE_ADMIN || u.Disabled || time.Since(u.CreateTime.AsTime()).Abs() > time.Hour {
		f.Errorf("user %v", u)
	}
	if all, err := f.ListTenants(f.ctx(), "", 0); err != nil || len(all) != 1 || all[0].Name != "tenants/default" {
		f.Errorf("tenants %v, %v", all, err)
	}
	if has, err := f.HasKeys(f.ctx(), ""); err != nil || has {
		f.Errorf("has keys: %v, %v", has, err)
	}
	f.refused("k", "a key that does not exist")
}

func testTenantRow(f identities) {
	n := store.NewTenant{
		ID: "acme", Title: "Acme", Admin: "root", By: "default", Request: request("t"),
		Key: store.NewKey{ID: "k", Hash: hashOf("k"), Role: commonv1.Role_ROLE_ADMIN, Creator: "root"},
	}
	for i := range 2 {
		if a, err := f.CreateTenant(f.ctx(), n); err != nil || a.Value != "k" || a.Replayed != (i > 0) {
			f.Fatalf("answer %+v, %v", a, err)
		}
		n.Key.ID, n.Key.Hash = "other", hashOf("other")
	}
	f.refused("other", "the key of a repeated request")
	n.Request = request("another")
	if _, err := f.CreateTenant(f.ctx(), n); !errors.Is(err, store.ErrExists) {
		f.Errorf("again: %v", err)
	}
	got, err := f.ResolveKey(f.ctx(), hashOf("k"))
	want := store.Resolved{Owner: store.Owner{Tenant: "acme", User: "root"}, Key: "k", Role: commonv1.Role_ROLE_ADMIN}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || d != "" {
		f.Errorf("%v %s", err, d)
	}
	tenant, err := f.GetTenant(f.ctx(), "acme")
	f.must(err)
	if tenant.Title != "Acme" || tenant.Name != "tenants/acme" {
		f.Errorf("tenant %v", tenant)
	}
	if all, err := f.ListTenants(f.ctx(), "acme", 1); err != nil || len(all) != 1 || all[0].Name != "tenants/default" {
		f.Errorf("tenants behind acme: %v, %v", all, err)
	}
	for tenant, want := range map[string]bool{"": true, "acme": true, store.SystemTenant: false} {
		if has, err := f.HasKeys(f.ctx(), tenant); err != nil || has != want {
			f.Errorf("has keys of %q: %v, %v", tenant, has, err)
		}
	}
	if _, err := f.GetTenant(f.ctx(), "none"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("none: %v", err)
	}
}

func testUserRow(f identities) {
	f.tenant("acme")
	f.tenant("globex")
	ann := store.Owner{Tenant: "acme", User: "ann"}
	n := store.NewUser{Owner: ann, Title: "Ann", Role: commonv1.Role_ROLE_USER}
	f.user(ann, commonv1.Role_ROLE_USER)
	if _, err := f.CreateUser(f.ctx(), n); !errors.Is(err, store.ErrExists) {
		f.Errorf("again: %v", err)
	}
	if _, err := f.CreateUser(f.ctx(), store.NewUser{Owner: store.Owner{Tenant: "none", User: "x"}}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("in a tenant that does not exist: %v", err)
	}
	title, role := "Ann B.", commonv1.Role_ROLE_OPERATOR
	for _, u := range []store.UserUpdate{{Owner: ann, Title: &title}, {Owner: ann, Role: &role}} {
		_, err := f.UpdateUser(f.ctx(), u)
		f.must(err)
	}
	u, err := f.GetUser(f.ctx(), ann)
	f.must(err)
	if u.Name != "users/ann" || u.Title != title || u.Role != role || u.Disabled {
		f.Errorf("user %v", u)
	}
	f.key(newKey(ann, "k"))
	_, err = f.DisableUser(f.ctx(), ann, store.Request{})
	f.must(err)
	f.refused("k", "the key of a disabled user")
	for what, err := range map[string]error{
		"update":  second(f.UpdateUser(f.ctx(), store.UserUpdate{Owner: ann, Title: &title})),
		"disable": second(f.DisableUser(f.ctx(), ann, store.Request{})),
		"key":     second(f.CreateKey(f.ctx(), newKey(ann, "k2"))),
		"other":   second(f.GetUser(f.ctx(), store.Owner{Tenant: "globex", User: "ann"})),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			f.Errorf("%s: %v", what, err)
		}
	}
	f.user(ann, commonv1.Role_ROLE_VIEWER)
	if u, err = f.GetUser(f.ctx(), ann); err != nil || u.Disabled || u.Role != commonv1.Role_ROLE_VIEWER {
		f.Errorf("enabled %v, %v", u, err)
	}
	f.refused("k", "the key of before")
	all, err := f.ListUsers(f.ctx(), "acme", "ann", 0)
	if err != nil || len(all) != 1 || all[0].Name != "users/root" {
		f.Errorf("users %v, %v", all, err)
	}
}

func second[T any](_ T, err error) error { return err }

func testKeyRoles(f identities) {
	f.tenant("acme")
	ann := store.Owner{Tenant: "acme", User: "ann"}
	f.user(ann, commonv1.Role_ROLE_OPERATOR)
	for _, c := range []struct {
		id               string
		role, most, want commonv1.Role
	}{
		{"unset", 0, commonv1.Role_ROLE_ADMIN, commonv1.Role_ROLE_OPERATOR},
		{"unset-by-a-user", 0, commonv1.Role_ROLE_USER, commonv1.Role_ROLE_USER},
		{"viewer", commonv1.Role_ROLE_VIEWER, commonv1.Role_ROLE_ADMIN, commonv1.Role_ROLE_VIEWER},
		{"operator", commonv1.Role_ROLE_OPERATOR, commonv1.Role_ROLE_ADMIN, commonv1.Role_ROLE_OPERATOR},
	} {
		n := newKey(ann, c.id)
		n.Role, n.Most, n.Scopes = c.role, c.most, []string{"sessions.read", "users.read"}
		f.key(n)
		r, err := f.ResolveKey(f.ctx(), hashOf(c.id))
		if err != nil || r.Role != c.want || !slices.Equal(r.Scopes, n.Scopes) || r.Key != c.id || r.Owner != ann {
			f.Errorf("%s: %+v, %v", c.id, r, err)
		}
	}
	n := newKey(ann, "too-high")
	n.Role = commonv1.Role_ROLE_ADMIN
	if _, err := f.CreateKey(f.ctx(), n); !errors.Is(err, store.ErrRole) {
		f.Errorf("a role above the user's: %v", err)
	}
	lower := commonv1.Role_ROLE_VIEWER
	_, err := f.UpdateUser(f.ctx(), store.UserUpdate{Owner: ann, Role: &lower})
	f.must(err)
	if r, err := f.ResolveKey(f.ctx(), hashOf("operator")); err != nil || r.Role != lower {
		f.Errorf("after the user's role fell: %+v, %v", r, err)
	}
	k, err := f.GetKey(f.ctx(), "acme", "operator")
	f.must(err)
	if k.User != "users/ann" || k.Role != commonv1.Role_ROLE_OPERATOR || k.Creator != "users/root" || k.Title != "for operator" || k.ExpireTime != nil || k.RevokeTime != nil || k.LastUseTime != nil {
		f.Errorf("key %v", k)
	}
	if _, err := f.GetKey(f.ctx(), "default", "operator"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("another tenant's: %v", err)
	}
}

func testKeyEnds(f identities) {
	f.tenant("acme")
	root := store.Owner{Tenant: "acme", User: "root"}
	ended, ends := newKey(root, "ended"), newKey(root, "ends")
	ended.Expire, ends.Expire = time.Now().Add(-time.Second), time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	f.key(ended)
	f.key(ends)
	f.refused("ended", "a key that has ended")
	if r, err := f.ResolveKey(f.ctx(), hashOf("ends")); err != nil || !r.Expire.Equal(ends.Expire) {
		f.Errorf("%+v, %v", r, err)
	}
	for range 2 {
		_, err := f.RevokeKey(f.ctx(), "acme", "ends", request("r"))
		f.must(err)
	}
	f.refused("ends", "a key that was revoked")
	first, err := f.GetKey(f.ctx(), "acme", "ends")
	f.must(err)
	_, err = f.RevokeKey(f.ctx(), "acme", "ends", request("again"))
	f.must(err)
	again, err := f.GetKey(f.ctx(), "acme", "ends")
	f.must(err)
	if first.RevokeTime == nil || !again.RevokeTime.AsTime().Equal(first.RevokeTime.AsTime()) {
		f.Errorf("revoked at %v and %v", first.RevokeTime, again.RevokeTime)
	}
	for _, k := range []string{"none", "first-globex"} {
		if _, err := f.RevokeKey(f.ctx(), "acme", k, store.Request{}); !errors.Is(err, store.ErrNotFound) {
			f.Errorf("%s: %v", k, err)
		}
	}
	if has, err := f.HasKeys(f.ctx(), ""); err != nil || !has {
		f.Errorf("without a key that can be used: %v, %v", has, err)
	}
}

func testListKeys(f identities) {
	f.tenant("acme")
	f.tenant("globex")
	ann := store.Owner{Tenant: "acme", User: "ann"}
	f.user(ann, commonv1.Role_ROLE_USER)
	for _, id := range []string{"a", "b", "c"} {
		f.key(newKey(ann, id))
	}
	if d := cmp.Diff([]string{"keys/c", "keys/b", "keys/a", "keys/first-acme"}, f.keysOf(store.KeyPage{Tenant: "acme"})); d != "" {
		f.Error(d)
	}
	if d := cmp.Diff([]string{"keys/c", "keys/b", "keys/a"}, f.keysOf(store.KeyPage{Tenant: "acme", User: "ann"})); d != "" {
		f.Error(d)
	}
	c, err := f.GetKey(f.ctx(), "acme", "c")
	f.must(err)
	page := store.KeyPage{Tenant: "acme", User: "ann", AfterTime: c.CreateTime.AsTime(), AfterID: "c", Limit: 1}
	if d := cmp.Diff([]string{"keys/b"}, f.keysOf(page)); d != "" {
		f.Error(d)
	}
}

func testKeysUsed(f identities) {
	f.tenant("acme")
	at := time.Now().Truncate(time.Microsecond)
	for _, late := range []time.Duration{0, time.Second, -time.Second} {
		f.must(f.KeysUsed(f.ctx(), []store.KeyUse{
			{Tenant: "acme", Key: "first-acme", Time: at.Add(late)}, {Tenant: "acme", Key: "none", Time: at}, {Tenant: "globex", Key: "first-acme", Time: at.Add(time.Hour)},
		}))
	}
	k, err := f.GetKey(f.ctx(), "acme", "first-acme")
	f.must(err)
	if used := k.LastUseTime.AsTime(); !used.Equal(at.Add(time.Second)) {
		f.Errorf("used %v, not %v", used, at.Add(time.Second))
	}
}

func testManyKeys(f identities) {
	f.tenant("acme")
	ann := store.Owner{Tenant: "acme", User: "ann"}
	f.user(ann, commonv1.Role_ROLE_USER)
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range store.MaxKeys + 3 {
		id := f.nextID("k")
		wg.Go(func() {
			_, err := f.CreateKey(f.ctx(), newKey(ann, id))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, store.ErrTooMany) {
				refused++
			} else if err != nil {
				f.Error(i, err)
			}
		})
	}
	wg.Wait()
	all := f.keysOf(store.KeyPage{Tenant: "acme", User: "ann"})
	if len(all) != store.MaxKeys || refused != 3 {
		f.Fatalf("%d keys, %d refused", len(all), refused)
	}
	_, err := f.RevokeKey(f.ctx(), "acme", all[0][len("keys/"):], store.Request{})
	f.must(err)
	f.key(newKey(ann, "one-more"))
}
