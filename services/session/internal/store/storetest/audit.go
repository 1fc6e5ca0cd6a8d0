package storetest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// journal is a fixture for the audit log.
type journal struct{ *fixture }

func (f journal) add(tenant string, entries ...audit.Entry) {
	f.Helper()
	f.must(f.AppendAudit(f.ctx(), tenant, entries))
}

func (f journal) entries(p store.AuditPage) []*sessionv1.AuditEntry {
	f.Helper()
	all, err := f.ListAudit(f.ctx(), p)
	f.must(err)
	return all
}

// chained fails the test unless the entries of a tenant are a chain of this length.
func (f journal) chained(tenant string, length int64) {
	f.Helper()
	chain := audit.Chain{Tenant: tenant}
	for _, e := range f.entries(store.AuditPage{Tenant: tenant}) {
		f.must(chain.Add(audit.Entry{
			Tenant: e.Tenant, Seq: e.Seq, Time: e.Time.AsTime(), User: strings.TrimPrefix(e.User, "users/"), Credential: e.Credential, Client: e.Client,
			Method: e.Method, Resource: e.Resource, RequestID: e.RequestId, Code: e.Code, Reason: e.Reason, Hash: e.Hash,
		}))
	}
	if chain.Seq != length {
		f.Errorf("the chain of %s has %d entries, not %d", tenant, chain.Seq, length)
	}
}

func testAudit(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("the entries of a tenant are a chain", func(t *testing.T) {
		f := journal{newFixture(t, open)}
		at := time.Now()
		f.add("acme", audit.Entry{Time: at, User: "ann", Credential: "keys/k", Client: "::1", Method: "m", Resource: "r", RequestID: "q", Code: "OK"},
			audit.Entry{Time: at, User: "bob", Method: "m", Code: "NOT_FOUND", Reason: "NONE"})
		f.add("globex", audit.Entry{Time: at, User: "ann", Method: "m", Code: "OK"})
		f.add("acme", audit.Entry{Time: at, User: "a\x00\xff", Resource: strings.Repeat("x", 1<<16), Method: "two\nlines", Code: "OK"})
		f.chained("acme", 3)
		f.chained("globex", 1)
		got := f.entries(store.AuditPage{Tenant: "acme", Limit: 1})[0]
		want := []string{"acme", "users/ann", "keys/k", "::1", "m", "r", "q", "OK", ""}
		if d := cmp.Diff(want, []string{got.Tenant, got.User, got.Credential, got.Client, got.Method, got.Resource, got.RequestId, got.Code, got.Reason}); d != "" {
			t.Error(d)
		}
		if !got.Time.AsTime().Equal(at.UTC().Truncate(time.Microsecond)) {
			t.Errorf("at %v, not %v", got.Time.AsTime(), at)
		}
	})

	t.Run("entries are found by what they say", func(t *testing.T) {
		f := journal{newFixture(t, open)}
		begin := time.Now().UTC().Truncate(time.Second)
		for i, e := range []audit.Entry{{User: "ann", Method: "m1", Resource: "r1"}, {User: "bob", Method: "m1", Resource: "r2"}, {User: "ann", Method: "m2", Resource: "r1"}} {
			e.Time, e.Code = begin.Add(time.Duration(i)*time.Second), "OK"
			f.add("acme", e)
		}
		for name, c := range map[string]struct {
			page store.AuditPage
			want []int64
		}{
			"all":          {store.AuditPage{}, []int64{1, 2, 3}},
			"a user's":     {store.AuditPage{User: "ann"}, []int64{1, 3}},
			"a method's":   {store.AuditPage{Method: "m1"}, []int64{1, 2}},
			"a resource's": {store.AuditPage{Resource: "r1", User: "ann"}, []int64{1, 3}},
			"behind one":   {store.AuditPage{AfterSeq: 1, Limit: 1}, []int64{2}},
			"of a time":    {store.AuditPage{Start: begin.Add(time.Second), End: begin.Add(2 * time.Second)}, []int64{2}},
		} {
			c.page.Tenant = "acme"
			var got []int64
			for _, e := range f.entries(c.page) {
				got = append(got, e.Seq)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	})

	t.Run("those who append at the same time continue one chain", func(t *testing.T) {
		f := journal{newFixture(t, open)}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					if err := f.AppendAudit(f.ctx(), "acme", []audit.Entry{{Time: time.Now(), Code: "OK"}, {Time: time.Now(), Code: "OK"}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		f.chained("acme", 160)
	})
}
