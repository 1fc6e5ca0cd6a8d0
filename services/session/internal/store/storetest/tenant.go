package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// testTenants gives two tenants the same ids and calls every method for one of
// them; the other must see nothing of it.
func testTenants(t *testing.T, open func(t *testing.T) store.Store) {
	f := newFixture(t, open)
	mine, other := store.Key{Tenant: "acme", Session: "s"}, store.Key{Tenant: "other", Session: "s"}
	leases := map[string]store.Lease{}
	for _, k := range []store.Key{mine, other} {
		n := newSession(k)
		n.Title, n.Request = "of "+k.Tenant, request("create")
		n.Messages = []*sessionv1.Message{message(k, "m0", "", "hello "+k.Tenant)}
		a, err := f.CreateSession(f.ctx(), n)
		f.must(err)
		if a.Replayed {
			t.Fatalf("%s: a request of the other tenant was replayed", k.Tenant)
		}
		f.must(f.PutAgentRevision(f.ctx(), k.Tenant, store.AgentRevision{Name: "agents/coder", Revision: "r1", Spec: []byte(k.Tenant)}))
		s := newTurn(k, "t")
		s.Command.Body, s.Request = []byte(k.Tenant), request("turn")
		if a, err = f.Submit(f.ctx(), s); err != nil || a.Replayed {
			t.Fatal(a, err)
		}
		leases[k.Tenant] = f.claim(k)
	}
	before := f.view(other, leases["other"])

	l := leases["acme"]
	w := start(l, "t", f.inbox(l)...)
	head := "m1"
	w.LastSeq, w.Events = 1, []*sessionv1.Event{delta(2, 5, "mine")}
	w.Messages, w.Head = []*sessionv1.Message{message(mine, "m1", "m0", "mine")}, &head
	w.AddUsage, w.FinishedTurns = &sessionv1.Usage{InputTokens: 7}, 3
	f.commit(w)
	f.commit(wait(l, "t", store.PendingCall{CallID: "c", TurnID: "t", Answer: store.CommandApproval, Digest: "d"}))
	if _, err := f.Submit(f.ctx(), answerTo(other, store.CommandApproval, "c", "d")); err == nil {
		t.Error("the other tenant answered the call")
	}
	_, err := f.Submit(f.ctx(), answerTo(mine, store.CommandApproval, "c", "d"))
	f.must(err)
	_, err = f.Submit(f.ctx(), interrupt(mine, true))
	f.must(err)
	if lost, err := f.Renew(f.ctx(), []store.Lease{{Key: mine, Epoch: l.Epoch}}, time.Hour); err != nil || len(lost) > 0 {
		t.Error(lost, err)
	}
	if d := cmp.Diff(before, f.view(other, leases["other"])); d != "" {
		t.Errorf("the other tenant saw it: %s", d)
	}
	f.commit(finish(l, "t"))
	f.must(f.Release(f.ctx(), l))
	if _, err := f.DeleteSession(f.ctx(), mine, request("delete")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, f.view(other, leases["other"])); d != "" {
		t.Errorf("the other tenant saw the deletion: %s", d)
	}
	if _, err := f.DeleteSession(f.ctx(), other, request("delete")); err == nil {
		t.Error("the other tenant's deletion was answered with ours")
	}
	if got := f.page(store.SessionPage{Tenant: "acme"}); len(got) != 0 {
		t.Errorf("sessions %v", got)
	}
}

// view returns everything that can be read of a session.
func (f *fixture) view(k store.Key, l store.Lease) []string {
	f.Helper()
	var out []string
	add := func(m proto.Message, err error) {
		f.Helper()
		f.must(err)
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		f.must(err)
		out = append(out, string(b))
	}
	add(f.session(k), nil)
	turn, err := f.GetTurn(f.ctx(), k, "t")
	add(turn, err)
	for _, s := range f.page(store.SessionPage{Tenant: k.Tenant}) {
		add(s, nil)
	}
	turns, err := f.ListTurns(f.ctx(), k, "", 0)
	f.must(err)
	for _, v := range turns {
		add(v, nil)
	}
	events, err := f.ListEvents(f.ctx(), k, 0, 0, 0)
	f.must(err)
	for _, v := range events {
		add(v, nil)
	}
	messages, err := f.ListMessages(f.ctx(), k, "", "", 0)
	f.must(err)
	for _, v := range messages {
		add(v, nil)
	}
	snap, err := f.Load(f.ctx(), l)
	f.must(err)
	add(snap.Session, nil)
	for _, c := range append(f.inbox(l), snap.Commands...) {
		out = append(out, string(c.Kind)+" "+string(c.Body))
	}
	for _, p := range snap.Pending {
		out = append(out, p.CallID)
	}
	rev, err := f.GetAgentRevision(f.ctx(), k.Tenant, "agents/coder", "r1")
	f.must(err)
	return append(out, string(rev.Spec))
}
