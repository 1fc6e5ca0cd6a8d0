package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
)

// locked makes a session, and a transaction that locks its row until release.
func locked(t *testing.T, how string) (s *postgres.Store, k store.Key, release func()) {
	t.Helper()
	url := pgtest.New(t)
	s = open(t, url)
	k = store.Key{Tenant: "t", Session: "s"}
	if _, err := s.CreateSession(t.Context(), newSession(k)); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	submit(t, s, k, "t1")
	return s, k, lock(t, conn, how)
}

// lock locks the row until it is released.
func lock(t *testing.T, conn *pgx.Conn, how string) (release func()) {
	t.Helper()
	for _, sql := range []string{"begin", "select 1 from session.sessions where session = 's' " + how} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.Exec(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
	}
}

func submit(t *testing.T, s *postgres.Store, k store.Key, turn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := s.Submit(ctx, store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn},
		Turn: &store.TurnRow{ID: turn, Turn: &sessionv1.Turn{Name: "sessions/" + k.Session + "/turns/" + turn}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The index of a long conversation and the folding of a log hold such a lock for most of a second or longer.
func TestALockThatOnlyKeepsASessionIsInNobodysWay(t *testing.T) {
	s, k, release := locked(t, "for key share")
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	leases, err := s.Claim(ctx, store.Claim{Replica: "one", TTL: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Fatalf("claimed %v, %v", leases, err)
	}
	submit(t, s, k, "t2")
	errs, err := s.Commit(ctx, []store.Write{{Lease: leases[0], AddUsage: &sessionv1.Usage{InputTokens: 1}}})
	if err != nil || errs[0] != nil {
		t.Error(errs, err)
	}
	if lost, err := s.Renew(ctx, leases, time.Hour); err != nil || len(lost) > 0 {
		t.Error(lost, err)
	}
}

func TestAClaimLooksAgainForASessionThatSomebodyLocked(t *testing.T) {
	s, _, release := locked(t, "for update")
	var released sync.WaitGroup
	defer released.Wait()
	released.Go(func() {
		<-time.After(15 * time.Millisecond) // the claim has looked by then, and goes on looking for much longer
		release()
	})
	leases, err := s.Claim(t.Context(), store.Claim{Replica: "one", TTL: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Errorf("claimed %v, %v", leases, err)
	}
}

func TestAClaimOfOthersDoesNotWaitForASessionThatSomebodyLocked(t *testing.T) {
	s, k, release := locked(t, "for update")
	defer release()
	wakes, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := store.Key{Tenant: k.Tenant, Session: "other"}
	if _, err := s.CreateSession(t.Context(), newSession(other)); err != nil {
		t.Fatal(err)
	}
	submit(t, s, other, "t1")
	await(t, wakes, store.Wake{Key: other, Kind: store.WakeInbox})
	leases, err := s.Claim(t.Context(), store.Claim{Replica: "one", TTL: time.Hour})
	if err != nil || len(leases) != 1 || leases[0].Key != other {
		t.Errorf("claimed %v, %v", leases, err)
	}
	await(t, wakes, store.Wake{Key: k, Kind: store.WakeInbox}) // to look again
}

// TestALockedSessionHoldsUpNoOtherLease renews two leases while the row of one is
// locked: the other one's is renewed at once, and this one's when it is free.
func TestALockedSessionHoldsUpNoOtherLease(t *testing.T) {
	url := pgtest.New(t)
	s := open(t, url)
	locked, free := store.Key{Tenant: "t", Session: "s"}, store.Key{Tenant: "t", Session: "z"}
	for _, k := range []store.Key{locked, free} {
		if _, err := s.CreateSession(t.Context(), newSession(k)); err != nil {
			t.Fatal(err)
		}
		submit(t, s, k, "t1")
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	both, err := s.Claim(t.Context(), store.Claim{Replica: "one", TTL: time.Microsecond})
	if err != nil || len(both) != 2 {
		t.Fatal(both, err)
	}
	release := lock(t, conn, "for update")
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond) // beyond the first statement that waits
	defer cancel()
	if lost, err := s.Renew(ctx, both, time.Hour); err == nil || len(lost) > 0 {
		t.Errorf("with one of them locked: lost %v, %v", lost, err)
	}
	if got, err := s.Claim(t.Context(), store.Claim{Replica: "two", TTL: time.Hour, Only: []store.Key{free}}); err != nil || len(got) > 0 {
		t.Errorf("the free one was not renewed: claimed %v, %v", got, err)
	}
	renewed := make(chan error, 1)
	go func() {
		lost, err := s.Renew(t.Context(), both, time.Hour)
		if len(lost) > 0 {
			t.Errorf("lost %v", lost)
		}
		renewed <- err
	}()
	release()
	if err := <-renewed; err != nil {
		t.Error(err)
	}
	if got, err := s.Claim(t.Context(), store.Claim{Replica: "two", TTL: time.Hour}); err != nil || len(got) > 0 {
		t.Errorf("claimed %v, %v", got, err)
	}
}
