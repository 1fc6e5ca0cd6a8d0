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

// keepPresent keeps a replica present until the test or stop ends it.
func keepPresent(t *testing.T, s *postgres.Store, replica string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.KeepPresent(ctx, replica) })
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// held makes a session with a turn, which a replica holds for an hour.
func heldBy(t *testing.T, s *postgres.Store, session, replica string) store.Lease {
	t.Helper()
	k := store.Key{Tenant: "acme", Session: session}
	if _, err := s.CreateSession(t.Context(), newSession(k)); err != nil {
		t.Fatal(err)
	}
	a, err := s.Submit(t.Context(), store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn, TurnID: "t"}, Claim: &store.Claimer{Replica: replica, TTL: time.Hour},
		Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/" + session + "/turns/t"}},
	})
	if err != nil || a.Lease == nil {
		t.Fatal(a, err)
	}
	return *a.Lease
}

// found waits until a replica looks for dead ones and finds this one, which has no lock.
func found(t *testing.T, admin *pgx.Conn, name string) {
	t.Helper()
	if _, err := admin.Exec(t.Context(), "insert into session.replicas (name) values ($1)", name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dead", func() (dead bool) {
		if err := admin.QueryRow(t.Context(), "select dead_at is not null from session.replicas where name = $1", name).Scan(&dead); err != nil {
			t.Fatal(err)
		}
		return dead
	})
}

// eventually asks Postgres, which sends no signal, until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // Postgres sends no signal
		if time.Now().After(deadline) {
			t.Fatalf("it never is %s", what)
		}
	}
}

// TestTheSessionsOfADeadReplicaAreFree ends the connection with a replica's lock, as its death does. Only the
// sessions of that replica become free, at once, and with a fence; those of a replica without a lock stay its own.
func TestTheSessionsOfADeadReplicaAreFree(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	one, two := open(t, url), open(t, url)
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context()) //nolint:errcheck // it has done its work
	keepPresent(t, one, "survivor")
	// A replica that dies is a connection that holds its lock, and ends.
	dying, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"select pg_advisory_lock(hashtextextended('fairlead session replica dying', 0))",
		"insert into session.replicas (name) values ('dying')",
	} {
		if _, err := dying.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	lost, older, own := heldBy(t, two, "lost", "dying"), heldBy(t, two, "older", "of an older version"), heldBy(t, two, "own", "survivor")
	looks := func() (n int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), "select count(*) from session.replicas where dead_at is not null and name <> 'without a lock'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	found(t, admin, "without a lock")
	if n := looks(); n != 0 {
		t.Fatalf("%d replicas are taken for dead", n)
	}
	wakes, err := two.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := dying.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, wakes, store.Wake{Key: lost.Key, Kind: store.WakeInbox})
	leases, err := two.Claim(t.Context(), store.Claim{Replica: "other", TTL: time.Hour})
	if err != nil || len(leases) != 1 || leases[0].Key != lost.Key || leases[0].Epoch != lost.Epoch+1 || !leases[0].FenceDue {
		t.Fatalf("claimed %+v, %v", leases, err)
	}
	if _, err := two.Inbox(t.Context(), lost); err == nil {
		t.Error("the dead replica still reads its inbox")
	}
	for _, l := range []store.Lease{older, own} {
		if _, err := two.Inbox(t.Context(), l); err != nil {
			t.Errorf("the lease of %s: %v", l.Session, err)
		}
	}
}

// TestAReplicaThatConnectsAgainLives ends only the connection: the replica takes its lock again. A machine that is busy
// may let it look dead for a moment, but not from then on.
func TestAReplicaThatConnectsAgainLives(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	one, two := open(t, url), open(t, url)
	keepPresent(t, one, "survivor")
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context()) //nolint:errcheck // it has done its work
	found(t, admin, "one")         // so the survivor looks from now on
	stop := keepPresent(t, two, "shaken")
	holder := func() (pid int) {
		t.Helper()
		// pg_locks shows the key in two halves.
		err := admin.QueryRow(t.Context(), `select coalesce(max(l.pid), 0) from pg_locks l, hashtextextended('fairlead session replica shaken', 0) as k
			where l.locktype = 'advisory' and l.granted and l.mode = 'ExclusiveLock' and l.database = (select oid from pg_database where datname = current_database())
				and l.classid::bigint = (k >> 32) & 4294967295 and l.objid::bigint = k & 4294967295`).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	first := 0
	eventually(t, "locked", func() bool { first = holder(); return first != 0 })
	if _, err := admin.Exec(t.Context(), "select pg_terminate_backend($1)", first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "locked again", func() bool { pid := holder(); return pid != 0 && pid != first })
	l := heldBy(t, two, "s", "shaken")
	found(t, admin, "another one")
	if _, err := two.Inbox(t.Context(), l); err != nil {
		t.Errorf("its lease: %v", err)
	}
	if got, err := one.Claim(t.Context(), store.Claim{Replica: "survivor", TTL: time.Hour}); err != nil || len(got) > 0 {
		t.Errorf("its session was taken: %v, %v", got, err)
	}
	var dead bool
	if err := admin.QueryRow(t.Context(), "select dead_at is not null from session.replicas where name = 'shaken'").Scan(&dead); err != nil || dead {
		t.Errorf("it counts as dead: %v, %v", dead, err)
	}
	stop()
	var left int
	if err := admin.QueryRow(t.Context(), "select count(*) from session.replicas where name = 'shaken'").Scan(&left); err != nil || left != 0 {
		t.Errorf("after its stop there are %d rows of it, %v", left, err)
	}
}
