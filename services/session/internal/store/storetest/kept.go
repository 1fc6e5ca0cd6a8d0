package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// RunKept runs the part of the suite about how long deliveries are kept. age
// makes the stored deliveries older.
func RunKept(t *testing.T, open func(t *testing.T) (_ store.Store, age func(time.Duration))) {
	t.Helper()
	s, age := open(t)
	f := hooks{&fixture{T: t, Store: s}}
	f.webhook(newWebhook("acme", "a", ""))
	note := func(tenant, id, state string) {
		t.Helper()
		f.must(f.Delivered(f.ctx(), store.Delivered{Tenant: tenant, ID: id, State: state, Attempts: 1}))
	}
	listed := func(when string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, f.deliveries("a")); d != "" {
			t.Errorf("listed %s (-want +got):\n%s", when, d)
		}
	}
	there := func(when, id string, want bool) {
		t.Helper()
		_, err := f.GetDelivery(f.ctx(), "acme", id)
		if errors.Is(err, store.ErrNotFound) == want || err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s, %s is there: %v", when, id, err)
		}
	}

	ended := func(session, turn string) {
		t.Helper()
		l := f.held(session, turn)
		f.commit(start(l, turn, f.inbox(l)...))
		f.commit(finish(l, turn))
	}

	ended("s1", "t1")
	note("acme", "a_t1", store.DeliveryDelivered)
	ended("s2", "t2")
	age(store.KeepDeliveries - time.Hour)
	ended("s3", "t3")
	note("acme", "a_t3", store.DeliveryFailed)
	listed("within seven days", "a_t3", "a_t2", "a_t1")

	age(2 * time.Hour)
	listed("after seven days, when one still waits", "a_t3", "a_t2")
	note("other", "a_t3", store.DeliveryDelivered)
	there("when another tenant notes a delivery", "a_t1", true)
	note("acme", "a_t3", store.DeliveryDelivered)
	there("when the next delivery is noted", "a_t1", false)
	there("while it waits", "a_t2", true)
	there("when it is young", "a_t3", true)
}
