package sqlite

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/storetest"
)

func TestTheStoresClockEndsLeasesAndRequestIDs(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a temporary file
	begin := time.Date(2026, 11, 21, 12, 0, 0, 123_456_789, time.UTC)
	now := begin
	s.db.now = func() time.Time { return now }
	k := store.Key{Tenant: "acme", Session: "s"}
	n := store.NewSession{
		Key:     k,
		Event:   &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{}}},
		Request: store.Request{Method: "m", ID: "r", KeepUntil: begin.Add(time.Hour)},
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.CreateSession(t.Context(), n)
	must(err)
	_, err = s.Submit(t.Context(), store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn},
		Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/s/turns/t"}},
	})
	must(err)
	got, err := s.GetSession(t.Context(), k)
	must(err)
	if at := got.CreateTime.AsTime(); !at.Equal(begin.Truncate(time.Microsecond)) {
		t.Errorf("created at %s", at)
	}
	claims := func(at time.Duration) int {
		t.Helper()
		now = begin.Add(at)
		leases, err := s.Claim(t.Context(), store.Claim{TTL: 10 * time.Second})
		must(err)
		return len(leases)
	}
	var took []int
	for _, at := range []time.Duration{0, 9 * time.Second, 10 * time.Second, 19 * time.Second, 20 * time.Second} {
		took = append(took, claims(at))
	}
	if d := cmp.Diff([]int{1, 0, 1, 0, 1}, took); d != "" {
		t.Error(d)
	}
	n.Session = "s2"
	now = begin.Add(time.Hour - time.Second)
	a, err := s.CreateSession(t.Context(), n)
	must(err)
	if !a.Replayed {
		t.Error("forgotten too early")
	}
	now = begin.Add(time.Hour)
	a, err = s.CreateSession(t.Context(), n)
	must(err)
	if a.Replayed {
		t.Error("not forgotten")
	}
}

func TestTheStoresClockSaysWhenAJobIsDueAgain(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()                                    //nolint:errcheck // a temporary file
	now := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) // the replica's clock is ahead
	s.db.now = func() time.Time { return now }
	claim := func() []store.Job {
		t.Helper()
		jobs, err := s.ClaimJobs(t.Context(), store.JobClaim{Limit: 1, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	if err := s.PutJobs(t.Context(), []store.Job{{Kind: store.JobAfterTurn, ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.EndJob(t.Context(), claim()[0], &store.Job{After: time.Hour}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour - time.Microsecond)
	if early := claim(); len(early) != 0 {
		t.Errorf("claimed too early: %v", early)
	}
	now = now.Add(time.Microsecond)
	if due := claim(); len(due) != 1 || !due[0].Due.Equal(now) {
		t.Errorf("claimed when due: %v", due)
	}
}

func TestExpiredRequestIDsArePurgedInBatches(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a temporary file
	now := time.Now()
	s.db.now = func() time.Time { return now }
	create := func(id string) {
		t.Helper()
		_, err := s.CreateSession(t.Context(), store.NewSession{
			Key: store.Key{Tenant: "acme", Session: id}, Event: &sessionv1.Event{},
			Request: store.Request{ID: id, KeepUntil: now.Add(time.Hour)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		t.Helper()
		if err := s.db.R.QueryRowContext(t.Context(), "select count(*) from request_ids").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 40 {
		create(string(rune('a'+i/10)) + string(rune('a'+i%10)))
	}
	if n := count(); n != 40 {
		t.Fatalf("%d are kept", n)
	}
	now = now.Add(2 * time.Hour)
	var left []int
	for _, id := range []string{"x", "y", "z"} {
		create(id)
		left = append(left, count())
	}
	if d := cmp.Diff([]int{25, 10, 3}, left); d != "" {
		t.Error(d)
	}
}

func TestDeliveriesAreKeptForSevenDays(t *testing.T) {
	storetest.RunKept(t, func(t *testing.T) (store.Store, func(time.Duration)) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		var later time.Duration
		s.db.now = func() time.Time { return time.Now().Add(later) }
		return s, func(d time.Duration) { later += d }
	})
}
