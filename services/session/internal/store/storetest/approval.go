package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// shownCall is a call that waits for a person.
func shownCall(call, user string) store.PendingCall {
	return store.PendingCall{
		CallID: call, TurnID: "t1", Answer: store.CommandApproval, Digest: "d-" + call, User: user,
		Shown: &sessionv1.PendingApproval{Tool: "Bash", ArgumentsJson: `{"command":"` + call + `"}`, SuggestedRules: []string{"Bash(make *)"}},
	}
}

// pendingIDs lists all pages of one entry each.
func (f *fixture) pendingIDs(p store.PendingPage) (ids []string) {
	f.Helper()
	for p.Limit = 1; ; {
		page, err := f.ListPending(f.ctx(), p)
		f.must(err)
		if len(page) == 0 {
			return ids
		}
		last := page[0]
		ids = append(ids, last.CallId)
		p.AfterTime, p.AfterSession, p.AfterCall = last.CreateTime.AsTime(), last.Session[len("sessions/"):], last.CallId
	}
}

func testPending(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	one, two := f.active("s1"), f.active("s2")
	f.commit(wait(one, "t1", shownCall("c1", "ann"), store.PendingCall{CallID: "c2", TurnID: "t1", Answer: store.CommandToolResult, User: "ann"}))
	f.commit(wait(two, "t1", shownCall("c3", "bob"), shownCall("c4", "bob")))

	t.Run("lists are the newest first, of one user, session or tenant", func(t *testing.T) {
		for name, c := range map[string]struct {
			page store.PendingPage
			want []string
		}{
			"all":               {store.PendingPage{Tenant: "acme"}, []string{"c4", "c3", "c1"}},
			"of a user":         {store.PendingPage{Tenant: "acme", User: "ann"}, []string{"c1"}},
			"of a session":      {store.PendingPage{Tenant: "acme", Session: "s2"}, []string{"c4", "c3"}},
			"of another's":      {store.PendingPage{Tenant: "acme", User: "ann", Session: "s2"}, nil},
			"of another tenant": {store.PendingPage{Tenant: "other"}, nil},
		} {
			if got := f.pendingIDs(c.page); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
	t.Run("an entry has what was stored", func(t *testing.T) {
		got, err := f.GetPending(f.ctx(), one.Key, "c1")
		f.must(err)
		if since := time.Since(got.CreateTime.AsTime()); since < -time.Minute || since > time.Minute {
			t.Errorf("it waits since %v", got.CreateTime.AsTime())
		}
		got.CreateTime = nil
		want := &sessionv1.PendingApproval{
			Session: "sessions/s1", Turn: "sessions/s1/turns/t1", CallId: "c1", User: "users/ann", Digest: "d-c1",
			Tool: "Bash", ArgumentsJson: `{"command":"c1"}`, SuggestedRules: []string{"Bash(make *)"},
		}
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
		for _, call := range []string{"c2", "c9"} {
			if _, err := f.GetPending(f.ctx(), one.Key, call); !errors.Is(err, store.ErrCallNotWaiting) {
				t.Errorf("%s: %v", call, err)
			}
		}
	})
	t.Run("a call that is parked again waits since the first time", func(t *testing.T) {
		before, err := f.GetPending(f.ctx(), two.Key, "c3")
		f.must(err)
		f.commit(wait(two, "t1", shownCall("c3", "bob")))
		after, err := f.GetPending(f.ctx(), two.Key, "c3")
		f.must(err)
		if !after.CreateTime.AsTime().Equal(before.CreateTime.AsTime()) {
			t.Errorf("it waits since %v, and was asked at %v", after.CreateTime.AsTime(), before.CreateTime.AsTime())
		}
	})
	t.Run("an answer takes an entry off the list, and so does the end of its wait", func(t *testing.T) {
		_, err := f.Submit(f.ctx(), answerTo(two.Key, store.CommandApproval, "c3", "d-c3"))
		f.must(err)
		w := wait(one, "t1")
		w.Waited = []string{"c1"}
		f.commit(w)
		if got := f.pendingIDs(store.PendingPage{Tenant: "acme"}); !slices.Equal(got, []string{"c4"}) {
			t.Errorf("the list is %v", got)
		}
		if _, err := f.GetPending(f.ctx(), two.Key, "c3"); !errors.Is(err, store.ErrCallNotWaiting) {
			t.Errorf("an answered call: %v", err)
		}
	})
}
