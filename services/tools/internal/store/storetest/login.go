package storetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

var logins = []testCase{
	{"a login is taken once and in time", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		must(t, s.PutLogin(ctx, []byte("d1"), []byte("one"), time.Now().Add(time.Hour)))
		must(t, s.PutLogin(ctx, []byte("d2"), []byte("two"), time.Now().Add(-time.Hour)))
		if got, err := s.TakeLogin(ctx, []byte("d1")); err != nil || string(got) != "one" {
			t.Errorf("taken: %q, %v", got, err)
		}
		for _, digest := range []string{"d1", "d2", "none"} {
			if got, err := s.TakeLogin(ctx, []byte(digest)); !errors.Is(err, store.ErrNoLogin) || got != nil {
				t.Errorf("%s: %q, %v", digest, got, err)
			}
		}
	}},
	{"a token belongs to one user and one server", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		k := store.TokenKey{Tenant: "acme", User: "ann", Resource: "https://a"}
		must(t, s.PutToken(ctx, k, []byte("1"), nil))
		must(t, s.PutToken(ctx, k, []byte("2"), nil))
		for _, other := range []store.TokenKey{{Tenant: "other", User: "ann", Resource: "https://a"}, {Tenant: "acme", User: "bob", Resource: "https://a"}, {Tenant: "acme", User: "ann", Resource: "https://b"}} {
			must(t, s.DeleteToken(ctx, other, nil))
			if got, err := s.Token(ctx, other); !errors.Is(err, store.ErrNoLogin) {
				t.Errorf("%v has %q, %v", other, got, err)
			}
		}
		if err := s.PutToken(ctx, k, []byte("3"), []byte("1")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("in place of an older one: %v", err)
		}
		must(t, s.PutToken(ctx, k, []byte("3"), []byte("2")))
		must(t, s.DeleteToken(ctx, k, []byte("2")))
		if got, err := s.Token(ctx, k); err != nil || !bytes.Equal(got, []byte("3")) {
			t.Errorf("it is %q, %v", got, err)
		}
		must(t, s.DeleteToken(ctx, k, []byte("3")))
		if _, err := s.Token(ctx, k); !errors.Is(err, store.ErrNoLogin) {
			t.Errorf("after its deletion: %v", err)
		}
	}},
}
