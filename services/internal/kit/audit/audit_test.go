package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/audit"
)

func chain(t *testing.T, n int) []audit.Entry {
	t.Helper()
	var before []byte
	all := make([]audit.Entry, n)
	for i := range all {
		e := audit.Entry{
			Tenant: "acme", Seq: int64(i + 1), Time: time.UnixMicro(int64(1_700_000_000_000_000 + i)).UTC(), User: "ann", Credential: "keys/k", Client: "10.0.0.1",
			Method: "fairlead.session.v1.SessionService.CreateSession", Resource: "sessions/s", RequestID: "r", Code: "OK",
		}
		e.Hash = e.Sum(before)
		before, all[i] = e.Hash, e
	}
	return all
}

func check(all []audit.Entry) error {
	var c audit.Chain
	for _, e := range all {
		if err := c.Add(e); err != nil {
			return err
		}
	}
	return nil
}

func TestAChainShowsWhatWasDoneToIt(t *testing.T) {
	if err := check(chain(t, 5)); err != nil {
		t.Fatal(err)
	}
	rehashed := func(e *audit.Entry, before []byte) { e.Hash = e.Sum(before) }
	for name, c := range map[string]struct {
		do   func([]audit.Entry) []audit.Entry
		want string
	}{
		"a field was changed":      {func(a []audit.Entry) []audit.Entry { a[2].User = "bob"; return a }, "entry 3 was changed"},
		"a letter moved a field":   {func(a []audit.Entry) []audit.Entry { a[2].User, a[2].Credential = "an", "nkeys/k"; return a }, "entry 3 was changed"},
		"a changed one has a hash": {func(a []audit.Entry) []audit.Entry { a[2].User = "bob"; rehashed(&a[2], a[1].Hash); return a }, "entry 4 was changed, or the one before it was replaced"},
		"one was removed":          {func(a []audit.Entry) []audit.Entry { return slices.Delete(a, 2, 3) }, "entries 3 to 3 are missing"},
		"the first was removed":    {func(a []audit.Entry) []audit.Entry { return a[1:] }, "entries 1 to 1 are missing"},
		"one was removed and the rest renumbered": {func(a []audit.Entry) []audit.Entry {
			a = slices.Delete(a, 2, 3)
			a[2].Seq, a[3].Seq = 3, 4
			return a
		}, "entry 3 was changed"},
		"two changed places":      {func(a []audit.Entry) []audit.Entry { a[1], a[2] = a[2], a[1]; return a }, "entries 2 to 2 are missing"},
		"one came twice":          {func(a []audit.Entry) []audit.Entry { return slices.Insert(a, 2, a[1]) }, "entry 2 follows entry 2"},
		"one is another tenant's": {func(a []audit.Entry) []audit.Entry { a[2].Tenant = "globex"; return a }, "of the tenant globex"},
	} {
		if err := check(c.do(chain(t, 5))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
