package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func newTrigger(user, id, session string) store.NewTrigger {
	n := store.NewTrigger{
		Owner: store.Owner{Tenant: "acme", User: user}, ID: id, Secret: []byte("secret of " + id),
		Trigger: &sessionv1.Trigger{Session: session, Text: "look", Proof: sessionv1.TriggerProof_TRIGGER_PROOF_ADDRESS},
	}
	if session == "" {
		n.Trigger.Agent = "agents/a"
	}
	return n
}

// triggers is a fixture for triggers.
type triggers struct{ *fixture }

func (f triggers) trigger(n store.NewTrigger) {
	f.Helper()
	_, err := f.CreateTrigger(f.ctx(), n)
	f.must(err)
}

func (f triggers) find(id string) *store.TriggerRow {
	f.Helper()
	row, err := f.FindTrigger(f.ctx(), id)
	f.must(err)
	return row
}

func testTriggers(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a trigger is created once, and found without its tenant", func(t *testing.T) { testTriggerRow(triggers{newFixture(t, open)}) })
	t.Run("a secret is rotated, and the old one kept for a while", func(t *testing.T) { testRotateTrigger(triggers{newFixture(t, open)}) })
	t.Run("a delivery is noted", func(t *testing.T) { testTriggerFired(triggers{newFixture(t, open)}) })
	t.Run("a trigger goes with its session", func(t *testing.T) { testTriggerGoes(triggers{newFixture(t, open)}) })
	t.Run("a deleted user's triggers are paused", func(t *testing.T) { testTriggerUser(triggers{newFixture(t, open)}) })
	t.Run("triggers are listed by id and bounded, also when many come at once", func(t *testing.T) { testManyTriggers(triggers{newFixture(t, open)}) })
}

func testTriggerRow(f triggers) {
	n := newTrigger("ann", "a", "")
	n.Request = store.Request{Method: "CreateTrigger", ID: "r", Digest: []byte("one"), KeepUntil: time.Now().Add(time.Hour)}
	for i, replayed := range []bool{false, true} {
		if a, err := f.CreateTrigger(f.ctx(), n); err != nil || a != (store.Answer{Value: "a", Replayed: replayed}) {
			f.Errorf("request %d: %+v, %v", i, a, err)
		}
	}
	row := f.find("a")
	if row.Owner != n.Owner || row.ID != "a" || string(row.Secret) != "secret of a" || row.OldSecret != nil || !row.OldUntil.IsZero() || row.Now.IsZero() {
		f.Errorf("%+v", row)
	}
	x := row.Trigger
	if x.Name != "triggers/a" || x.User != "users/ann" || x.Agent != "agents/a" || x.Text != "look" || x.Proof != n.Trigger.Proof || x.Paused || x.CreateTime == nil || x.LastTime != nil {
		f.Errorf("%v", x)
	}
	if _, err := f.FindTrigger(f.ctx(), "none"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("one that does not exist: %v", err)
	}
	if _, err := f.CreateTrigger(f.ctx(), newTrigger("ann", "b", "sessions/none")); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of no session: %v", err)
	}
	for _, tenant := range []string{"rival", "acme"} {
		_, err := f.DeleteTrigger(f.ctx(), tenant, "a", store.Request{})
		if (err == nil) != (tenant == "acme") || err != nil && !errors.Is(err, store.ErrNotFound) {
			f.Errorf("%s deletes: %v", tenant, err)
		}
	}
	if _, err := f.PauseTrigger(f.ctx(), "acme", "a", true, store.Request{}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("after its end: %v", err)
	}
}

func testRotateTrigger(f triggers) {
	f.trigger(newTrigger("ann", "a", ""))
	rotate := func(secret string, overlap time.Duration) *store.TriggerRow {
		_, err := f.RotateTrigger(f.ctx(), store.RotateTrigger{Tenant: "acme", ID: "a", Secret: []byte(secret), Overlap: overlap})
		f.must(err)
		return f.find("a")
	}
	row := rotate("two", time.Hour)
	if string(row.Secret) != "two" || string(row.OldSecret) != "secret of a" || row.OldUntil.Sub(row.Now).Round(time.Minute) != time.Hour || row.Trigger.OldSecretExpireTime == nil {
		f.Errorf("%+v", row)
	}
	if row = rotate("three", 0); string(row.Secret) != "three" || row.OldSecret != nil || row.Trigger.OldSecretExpireTime != nil {
		f.Errorf("at once: %+v", row)
	}
	if _, err := f.RotateTrigger(f.ctx(), store.RotateTrigger{Tenant: "rival", ID: "a"}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("of another tenant: %v", err)
	}
}

func testTriggerFired(f triggers) {
	f.trigger(newTrigger("ann", "a", ""))
	f.must(f.TriggerFired(f.ctx(), store.TriggerFired{Tenant: "acme", ID: "a", Turn: "sessions/s/turns/1"}))
	f.must(f.TriggerFired(f.ctx(), store.TriggerFired{Tenant: "acme", ID: "a", Error: "a fault\nin two lines"}))
	x := f.find("a").Trigger
	if x.LastTurn != "sessions/s/turns/1" || x.LastError != "a fault in two lines" || x.LastTime == nil {
		f.Errorf("%v", x)
	}
}

func testTriggerGoes(f triggers) {
	k := f.create(key("s"))
	f.trigger(newTrigger("ann", "a", "sessions/s"))
	f.trigger(newTrigger("ann", "b", ""))
	_, err := f.DeleteSession(f.ctx(), k, store.Request{})
	f.must(err)
	if _, err := f.FindTrigger(f.ctx(), "a"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("that of the session: %v", err)
	}
	f.find("b")
}

func testTriggerUser(f triggers) {
	for _, user := range []string{"ann", "bob"} {
		_, err := f.CreateUser(f.ctx(), store.NewUser{Owner: store.Owner{Tenant: store.SystemTenant, User: user}, Role: commonv1.Role_ROLE_USER})
		f.must(err)
		n := newTrigger(user, user, "")
		n.Tenant = store.SystemTenant
		f.trigger(n)
	}
	_, err := f.DisableUser(f.ctx(), store.Owner{Tenant: store.SystemTenant, User: "ann"}, store.Request{})
	f.must(err)
	if !f.find("ann").Trigger.Paused || f.find("bob").Trigger.Paused {
		f.Error("not ann's trigger alone is paused")
	}
	_, err = f.PauseTrigger(f.ctx(), store.SystemTenant, "ann", false, store.Request{})
	f.must(err)
	if f.find("ann").Trigger.Paused {
		f.Error("it does not go on")
	}
}

func testManyTriggers(f triggers) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range store.MaxTriggers + 5 {
		wg.Go(func() {
			_, err := f.CreateTrigger(f.ctx(), newTrigger("ann", fmt.Sprintf("t%03d", i), ""))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, store.ErrTooMany) {
				refused++
			} else if err != nil {
				f.Error(err)
			}
		})
	}
	wg.Wait()
	f.trigger(newTrigger("bob", "b", ""))
	own, err := f.ListTriggers(f.ctx(), store.TriggerPage{Tenant: "acme", User: "ann"})
	if err != nil || len(own) != store.MaxTriggers || refused != 5 {
		f.Errorf("%d are there, %d were refused, %v", len(own), refused, err)
	}
	page, err := f.ListTriggers(f.ctx(), store.TriggerPage{Tenant: "acme", Limit: 2})
	if err != nil || len(page) != 2 || page[0].Name != "triggers/b" || page[1].Name != own[0].Name {
		f.Errorf("a page of all: %v, %v", page, err)
	}
	page, err = f.ListTriggers(f.ctx(), store.TriggerPage{Tenant: "acme", User: "ann", After: "t001", Limit: 1})
	if err != nil || len(page) != 1 || page[0].Name <= "triggers/t001" {
		f.Errorf("the next page: %v, %v", page, err)
	}
	if none, err := f.ListTriggers(f.ctx(), store.TriggerPage{Tenant: "rival"}); err != nil || len(none) != 0 {
		f.Errorf("another tenant's: %v, %v", none, err)
	}
}
