package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func newWebhook(tenant, id, session string) store.NewWebhook {
	return store.NewWebhook{Tenant: tenant, ID: id, Secret: []byte("secret of " + id), Webhook: &sessionv1.Webhook{Url: "https://example.com/" + id, Session: session}}
}

// hooks is a fixture for webhooks.
type hooks struct{ *fixture }

func (f hooks) webhook(n store.NewWebhook) {
	f.Helper()
	_, err := f.CreateWebhook(f.ctx(), n)
	f.must(err)
}

// deliveries returns the ids of the deliveries of a webhook of acme.
func (f hooks) deliveries(webhook string) []string {
	f.Helper()
	all, err := f.ListDeliveries(f.ctx(), "acme", webhook, "", 0)
	f.must(err)
	ids := []string{}
	for _, d := range all {
		ids = append(ids, d.Id)
	}
	return ids
}

func testWebhooks(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a webhook is created once", func(t *testing.T) { testWebhookRow(hooks{newFixture(t, open)}) })
	t.Run("a secret is rotated, and the old one kept for a while", func(t *testing.T) { testRotateWebhook(hooks{newFixture(t, open)}) })
	t.Run("a turn's end makes a message for each webhook that wants it", func(t *testing.T) { testTurnEnds(hooks{newFixture(t, open)}) })
	t.Run("what became of a message is noted", func(t *testing.T) { testDelivered(hooks{newFixture(t, open)}) })

	t.Run("webhooks are listed by id and bounded, also when many come at once", func(t *testing.T) {
		f := hooks{newFixture(t, open)}
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range store.MaxWebhooks + 5 {
			n := newWebhook("acme", string(rune('a'+i/10))+string(rune('a'+i%10)), "")
			wg.Go(func() {
				_, err := f.CreateWebhook(f.ctx(), n)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, store.ErrTooMany) {
					refused++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all, err := f.ListWebhooks(f.ctx(), "acme", "", 0)
		if err != nil || len(all) != store.MaxWebhooks || refused != 5 {
			t.Errorf("%d are there, %d were refused, %v", len(all), refused, err)
		}
		page, err := f.ListWebhooks(f.ctx(), "acme", "aa", 2)
		if err != nil || len(page) != 2 || page[0].Name <= "webhooks/aa" || page[1].Name <= page[0].Name {
			t.Errorf("page %v, %v", page, err)
		}
	})

	t.Run("deleting a webhook drops its messages", func(t *testing.T) {
		f := hooks{newFixture(t, open)}
		f.webhook(newWebhook("acme", "a", ""))
		f.webhook(newWebhook("acme", "b", ""))
		f.commit(finish(f.active("s"), "t1"))
		_, err := f.DeleteWebhook(f.ctx(), "acme", "a", request("d"))
		f.must(err)
		if a, err := f.DeleteWebhook(f.ctx(), "acme", "a", request("d")); err != nil || !a.Replayed {
			t.Error(a, err)
		}
		if _, err := f.GetDelivery(f.ctx(), "acme", "a_t1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("delivery: %v", err)
		}
		if d := cmp.Diff([]string{"b_t1"}, jobIDs(f.hookJobs(store.JobWebhook))); d != "" {
			t.Error(d)
		}
	})

	t.Run("deleting a session drops its messages and its webhooks", func(t *testing.T) {
		f := hooks{newFixture(t, open)}
		f.webhook(newWebhook("acme", "all", ""))
		l := f.active("s")
		f.webhook(newWebhook("acme", "one", "sessions/s"))
		f.commit(finish(l, "t1"))
		_, err := f.DeleteSession(f.ctx(), l.Key, store.Request{})
		f.must(err)
		if _, err := f.GetWebhook(f.ctx(), "acme", "one"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("webhook: %v", err)
		}
		if got, jobs := f.deliveries("all"), f.hookJobs(store.JobWebhook); len(got)+len(jobs) > 0 {
			t.Errorf("deliveries %v, jobs %v", got, jobs)
		}
	})
}

func testWebhookRow(f hooks) {
	n := newWebhook("acme", "a", "")
	n.Request = request("r")
	f.webhook(n)
	n.ID, n.Secret = "b", []byte("another")
	if a, err := f.CreateWebhook(f.ctx(), n); err != nil || a != (store.Answer{Value: "a", Replayed: true}) {
		f.Error(a, err)
	}
	if _, err := f.CreateWebhook(f.ctx(), newWebhook("acme", "a", "")); !errors.Is(err, store.ErrExists) {
		f.Errorf("again: %v", err)
	}
	if _, err := f.CreateWebhook(f.ctx(), newWebhook("acme", "c", "sessions/none")); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("for a session that is not there: %v", err)
	}
	row, err := f.GetWebhook(f.ctx(), "acme", "a")
	f.must(err)
	if w := row.Webhook; w.Name != "webhooks/a" || w.Url != "https://example.com/a" || w.Session != "" || w.CreateTime == nil || string(row.Secret) != "secret of a" {
		f.Errorf("row %+v", row)
	}
	f.webhook(newWebhook("other", "a", ""))
	if _, err := f.DeleteWebhook(f.ctx(), "other", "a", store.Request{}); err != nil {
		f.Error(err)
	}
	if _, err := f.GetWebhook(f.ctx(), "acme", "a"); err != nil {
		f.Errorf("the other tenant deleted it: %v", err)
	}
}

func testRotateWebhook(f hooks) {
	f.webhook(newWebhook("acme", "a", ""))
	f.webhook(newWebhook("other", "a", ""))
	f.commit(finish(f.active("s"), "t1"))
	rotate := func(secret string, overlap time.Duration, r store.Request) (store.Answer, error) {
		return f.RotateWebhook(f.ctx(), store.RotateWebhook{Tenant: "acme", ID: "a", Secret: []byte(secret), Overlap: overlap, Request: r})
	}
	// check compares the secrets of the webhook with those that sign a delivery.
	check := func(secret, old string) {
		f.Helper()
		row, err := f.GetWebhook(f.ctx(), "acme", "a")
		f.must(err)
		d, err := f.GetDelivery(f.ctx(), "acme", "a_t1")
		f.must(err)
		for _, w := range []*store.WebhookRow{row, &d.WebhookRow} {
			if string(w.Secret) != secret || string(w.OldSecret) != old || w.OldUntil.IsZero() != (old == "") || (w.Webhook.OldSecretExpireTime == nil) != (old == "") {
				f.Errorf("secrets %q and %q until %v, shown as %v", w.Secret, w.OldSecret, w.OldUntil, w.Webhook)
			}
			if left := w.OldUntil.Sub(d.Now); old != "" && (left > time.Hour || left < time.Hour-time.Minute) {
				f.Errorf("the old secret ends in %v", left)
			}
		}
	}
	check("secret of a", "")
	if a, err := rotate("two", time.Hour, request("r")); err != nil || a != (store.Answer{Value: "a"}) {
		f.Error(a, err)
	}
	check("two", "secret of a")
	if a, err := rotate("lost", time.Hour, request("r")); err != nil || a != (store.Answer{Value: "a", Replayed: true}) {
		f.Error(a, err)
	}
	check("two", "secret of a")
	_, err := rotate("three", time.Hour, store.Request{})
	f.must(err)
	check("three", "two")
	_, err = rotate("four", 0, store.Request{})
	f.must(err)
	check("four", "")
	if _, err := f.RotateWebhook(f.ctx(), store.RotateWebhook{Tenant: "acme", ID: "none", Secret: []byte("x")}); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("a webhook that is not there: %v", err)
	}
	if row, err := f.GetWebhook(f.ctx(), "other", "a"); err != nil || string(row.Secret) != "secret of a" {
		f.Errorf("the other tenant's: %v, %v", row, err)
	}
}

func testTurnEnds(f hooks) {
	l, quiet := f.active("s"), f.active("quiet")
	f.webhook(newWebhook("acme", "all", ""))
	f.webhook(newWebhook("acme", "one", "sessions/s"))
	f.webhook(newWebhook("other", "all", ""))
	f.commit(wait(l, "t1", store.PendingCall{CallID: "c", TurnID: "t1", Answer: store.CommandApproval}))
	if jobs := f.hookJobs(store.JobWebhook); len(jobs) > 0 {
		f.Errorf("a turn that waits put %v", jobs)
	}
	errs, err := f.Commit(f.ctx(), []store.Write{finish(l, "t1"), {Lease: quiet, StepCommitted: true}})
	f.must(err)
	f.must(errors.Join(errs...))
	f.submitTurn(l.Key, "t2")
	jobs := f.hookJobs(store.JobWebhook)
	if d := cmp.Diff([]string{"all_t1", "one_t1"}, jobIDs(jobs)); d != "" {
		f.Fatal(d)
	}
	for _, j := range jobs {
		if j.Tenant != "acme" || j.Session != "s" {
			f.Errorf("job %+v", j)
		}
		f.must(f.EndJob(f.ctx(), j, nil))
	}
	f.commit(finish(l, "t1")) // the same again makes no duplicates
	if jobs := f.hookJobs(store.JobWebhook); len(jobs) > 0 {
		f.Errorf("the same end put %v", jobs)
	}
	stale := finish(l, "t2")
	stale.Epoch--
	if errs, err := f.Commit(f.ctx(), []store.Write{stale}); err != nil || !errors.Is(errs[0], store.ErrStaleEpoch) {
		f.Fatal(errs, err)
	}
	if jobs := f.hookJobs(store.JobWebhook); len(jobs) > 0 {
		f.Errorf("a write that was refused put %v", jobs)
	}
	d, err := f.GetDelivery(f.ctx(), "acme", "one_t1")
	f.must(err)
	if d.Key != l.Key || d.TurnID != "t1" || d.Webhook.Name != "webhooks/one" || string(d.Secret) != "secret of one" ||
		d.Delivery.State != store.DeliveryPending || d.Delivery.Turn != "sessions/s/turns/t1" || d.Delivery.NextTime == nil {
		f.Errorf("delivery %+v", d)
	}
	if age := d.Now.Sub(d.Delivery.CreateTime.AsTime()); age < 0 || age > time.Minute {
		f.Errorf("it is %v old", age)
	}
}

func testDelivered(f hooks) {
	f.webhook(newWebhook("acme", "a", ""))
	l := f.active("s")
	f.commit(finish(l, "t1"))
	f.submitTurn(l.Key, "t2")
	f.commit(finish(l, "t2"))
	if d := cmp.Diff([]string{"a_t2", "a_t1"}, f.deliveries("a")); d != "" {
		f.Error(d)
	}
	page, err := f.ListDeliveries(f.ctx(), "acme", "a", "a_t2", 1)
	if err != nil || len(page) != 1 || page[0].Id != "a_t1" {
		f.Errorf("page %v, %v", page, err)
	}
	if _, err := f.ListDeliveries(f.ctx(), "other", "a", "", 0); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("the other tenant's: %v", err)
	}
	next := time.Now().Add(time.Hour)
	f.must(f.Delivered(f.ctx(), store.Delivered{Tenant: "acme", ID: "a_t1", State: store.DeliveryPending, Attempts: 1, LastError: "no", LastStatus: 500, Next: next}))
	d, err := f.GetDelivery(f.ctx(), "acme", "a_t1")
	f.must(err)
	if x := d.Delivery; x.State != "PENDING" || x.Attempts != 1 || x.LastError != "no" || x.LastStatus != 500 || x.NextTime.AsTime().Sub(next).Abs() > time.Millisecond {
		f.Errorf("delivery %v", x)
	}
	for text, want := range strangeTexts() {
		f.must(f.Delivered(f.ctx(), store.Delivered{Tenant: "acme", ID: "a_t1", State: store.DeliveryPending, Attempts: 1, LastError: text, Next: next}))
		if d, err = f.GetDelivery(f.ctx(), "acme", "a_t1"); err != nil || d.Delivery.LastError != want {
			f.Errorf("the error %q is %q, %v", text, d.Delivery.GetLastError(), err)
		}
	}
	f.must(f.Delivered(f.ctx(), store.Delivered{Tenant: "acme", ID: "a_t1", State: store.DeliveryDelivered, Attempts: 2, LastStatus: 200}))
	d, err = f.GetDelivery(f.ctx(), "acme", "a_t1")
	f.must(err)
	if x := d.Delivery; x.State != "DELIVERED" || x.Attempts != 2 || x.LastError != "" || x.LastStatus != 200 || x.NextTime != nil {
		f.Errorf("delivery %v", x)
	}
}

// strangeTexts returns texts from outside that not every database accepts, and how every
// backend stores them.
func strangeTexts() map[string]string {
	return map[string]string{
		"a\x00b": "a b", "a\xffb": "a\uFFFDb", "lone \xed\xa0\xbd": "lone \uFFFD\uFFFD\uFFFD", "two\nlines": "two lines",
		strings.Repeat("x", 1<<20): strings.Repeat("x", 500) + "…",
	}
}
