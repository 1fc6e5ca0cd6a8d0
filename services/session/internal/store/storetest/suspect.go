package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// lapse ends leases, as if their holders had died.
func (f *fixture) lapse(leases ...store.Lease) {
	f.Helper()
	lost, err := f.Renew(f.ctx(), leases, time.Microsecond)
	f.must(err)
	if len(lost) > 0 {
		f.Fatalf("the leases of %v were lost before", lost)
	}
	tick()
}

// crashed makes a session whose holders died so many times without progress of its
// turn.
func (f *fixture) crashed(session string, times int) {
	f.Helper()
	l := f.active(session)
	for range times {
		f.lapse(l)
		l = f.claimUntil(store.Claim{TTL: time.Hour, Only: []store.Key{l.Key}})[0]
	}
	f.lapse(l)
}

// claimSuspects claims with the rule for suspects and returns the claimed sessions, as `a b?`, where
// b is suspect.
func (f *fixture) claimSuspects(c store.Claim) (got []string, leases []store.Lease) {
	f.Helper()
	c.TTL, c.SuspectAt = time.Hour, 2
	leases, err := f.Claim(f.ctx(), c)
	f.must(err)
	for _, l := range leases {
		name := l.Session
		if l.Suspect {
			name += "?"
		}
		got = append(got, name)
	}
	slices.Sort(got)
	return got, leases
}

func testSuspects(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("sessions whose holders died too often are claimed a few at a time, the others at once", func(t *testing.T) {
		f := newFixture(t, open)
		f.crashed("b", 2)
		f.crashed("c", 3)
		f.crashed("a", 1)
		var all []store.Lease
		for _, step := range []struct {
			claim store.Claim
			want  []string
		}{
			{store.Claim{Limit: 9, Suspects: 1}, []string{"a", "b?"}},
			{store.Claim{Limit: 9, Suspects: 0}, nil},
			{store.Claim{Limit: 9, Suspects: 1}, []string{"c?"}},
		} {
			got, leases := f.claimSuspects(step.claim)
			if d := cmp.Diff(step.want, got); d != "" {
				t.Errorf("%+v: %s", step.claim, d)
			}
			all = append(all, leases...)
		}
		for _, l := range all {
			f.commit(store.Write{Lease: l, StepCommitted: true})
		}
		f.lapse(all...)
		if got, _ := f.claimSuspects(store.Claim{Limit: 9}); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("once they have got further: %v", got)
		}
	})

	t.Run("a session that has to wait takes no other's place", func(t *testing.T) {
		f := newFixture(t, open)
		f.crashed("a", 2)
		f.crashed("b", 0)
		if got, _ := f.claimSuspects(store.Claim{Limit: 1, TenantLimit: 1}); !slices.Equal(got, []string{"b"}) {
			t.Errorf("claimed %v", got)
		}
	})

	t.Run("without a rule none is suspect", func(t *testing.T) {
		f := newFixture(t, open)
		f.crashed("a", 9)
		leases, err := f.Claim(f.ctx(), store.Claim{TTL: time.Hour})
		f.must(err)
		if len(leases) != 1 || leases[0].Suspect {
			t.Errorf("claimed %+v", leases)
		}
	})
}
