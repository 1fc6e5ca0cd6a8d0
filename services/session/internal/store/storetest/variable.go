package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func testVariables(t *testing.T, open func(t *testing.T) store.Store) {
	ann, bob, other := store.Owner{Tenant: "acme", User: "ann"}, store.Owner{Tenant: "acme", User: "bob"}, store.Owner{Tenant: "globex", User: "ann"}
	set := func(f *fixture, o store.Owner, name, value string) store.Variable {
		f.Helper()
		v, err := f.SetVariable(f.ctx(), o, store.Variable{Name: name, Value: value}, store.Request{})
		f.must(err)
		return v
	}
	has := func(f *fixture, o store.Owner, want ...store.Variable) {
		f.Helper()
		got, err := f.Variables(f.ctx(), o)
		f.must(err)
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Variable{}, "Time"), cmpopts.EquateEmpty()); d != "" {
			f.Errorf("%v has\n%s", o, d)
		}
	}

	t.Run("a user's variables are the user's alone, in the order of names", func(t *testing.T) {
		f := newFixture(t, open)
		set(f, ann, "B", "2")
		first := set(f, ann, "A", "0")
		second := set(f, ann, "A", "1")
		set(f, bob, "A", "bob's")
		if d := time.Since(second.Time); d < -time.Minute || d > time.Minute || second.Time.Before(first.Time) {
			t.Errorf("set at %v and %v", first.Time, second.Time)
		}
		has(f, ann, store.Variable{Name: "A", Value: "1"}, store.Variable{Name: "B", Value: "2"})
		has(f, bob, store.Variable{Name: "A", Value: "bob's"})
		has(f, other)
		f.must(f.DeleteVariable(f.ctx(), ann, "A", store.Request{}))
		for _, o := range []store.Owner{ann, other} {
			if err := f.DeleteVariable(f.ctx(), o, "A", store.Request{}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("deleting what is not there: %v", err)
			}
		}
		has(f, ann, store.Variable{Name: "B", Value: "2"})
		has(f, bob, store.Variable{Name: "A", Value: "bob's"})
	})

	t.Run("a request is made once", func(t *testing.T) {
		f := newFixture(t, open)
		r := store.Request{Method: "SetUserVariable", Parent: "users/ann", ID: "r", Digest: []byte("one"), KeepUntil: time.Now().Add(time.Hour)}
		put := func(value string, r store.Request) (store.Variable, error) {
			return f.SetVariable(f.ctx(), ann, store.Variable{Name: "A", Value: value}, r)
		}
		first, err := put("1", r)
		f.must(err)
		set(f, ann, "A", "2")
		if again, err := put("1", r); err != nil || again.Time.Before(first.Time) {
			t.Errorf("repeated: %v", err)
		}
		has(f, ann, store.Variable{Name: "A", Value: "2"})
		reused := r
		reused.Digest = []byte("two")
		if _, err := put("3", reused); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("with another body: %v", err)
		}
		del := store.Request{Method: "DeleteUserVariable", Parent: "users/ann", ID: "r", Digest: []byte("x"), KeepUntil: time.Now().Add(time.Hour)}
		for range 2 {
			f.must(f.DeleteVariable(f.ctx(), ann, "A", del))
		}
		if again, err := put("1", r); err != nil || !again.Time.IsZero() {
			t.Errorf("repeated after the deletion: %v, %v", again, err)
		}
		has(f, ann)
	})

	t.Run("there are not more than there may be", func(t *testing.T) {
		f := newFixture(t, open)
		large := strings.Repeat("x", store.MaxVariableBytes-1)
		set(f, ann, "A", large)
		set(f, ann, "A", large) // replaces itself
		add := func(o store.Owner, name, value string) error {
			_, err := f.SetVariable(f.ctx(), o, store.Variable{Name: name, Value: value}, store.Request{})
			return err
		}
		if err := add(ann, "B", ""); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("more bytes: %v", err)
		}
		for i := range store.MaxVariables {
			set(f, bob, fmt.Sprintf("V%d", i), "x")
		}
		if err := add(bob, "ONE_MORE", ""); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		f.must(add(bob, "V0", "y"))
	})
}
