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
	for _, sql := range []string{"begin", "select 1 from session.sessions where session = 's' " + how} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return s, k, func() {
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
