package postgres

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// replicaDatabase has the URL of the database, and replicaName the name, of a replica that is a process of its own.
const replicaDatabase, replicaName = "FAIRLEAD_TEST_REPLICA_DATABASE", "FAIRLEAD_TEST_REPLICA_NAME"

// lent is longer than any test: no lease ends by itself.
const lent = time.Hour

func at(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func callOf(replica string) store.Ref {
	return store.Ref{Tenant: "acme", Session: "sessions/" + replica, Epoch: 1, CallID: replica}
}

// TestRunReplicaUntilKilled is a replica with one running call, in a process of its own.
func TestRunReplicaUntilKilled(t *testing.T) {
	url, name := os.Getenv(replicaDatabase), os.Getenv(replicaName)
	if url == "" {
		t.Skip("it is a process of another test")
	}
	s := at(t, url)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.KeepPresent(t.Context(), name) })
	err := s.Move(t.Context(), callOf(name), store.Change{
		From: store.None, To: store.Started, Tool: "Bash", Digest: "d", Owner: store.Owner{ID: name}, TTL: lent, At: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "present", func() bool { return present(t, s, name) })
	fmt.Println("\nready")
	select {} // until it is killed
}

// present reports whether a replica is listed, and not as dead.
func present(t *testing.T, s *Store, name string) (is bool) {
	t.Helper()
	if err := s.db.pool.QueryRow(t.Context(), "select exists (select from replicas where name = $1 and dead_at is null)", name).Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}

// await asks Postgres, which sends no signal, until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // Postgres sends no signal
		if time.Now().After(deadline) {
			t.Fatalf("it never is %s", what)
		}
	}
}

// replica starts a process with a running call. It is killed at the end of the test.
func replica(t *testing.T, url, name string) *os.Process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestRunReplicaUntilKilled$", "-test.v")
	cmd.Env = append(os.Environ(), replicaDatabase+"="+url, replicaName+"="+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Text() != "ready"; {
		if !lines.Scan() {
			t.Fatal("the replica has ended")
		}
	}
	return cmd.Process
}

// TestTheCallsOfADeadReplicaAreFree kills one replica and pauses another. Only the call of the killed one is free, long
// before its lease ends.
func TestTheCallsOfADeadReplicaAreFree(t *testing.T) {
	url := pgtest.New(t)
	s := at(t, url)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { s.KeepPresent(ctx, "survivor") })
	killed, paused := replica(t, url, "killed"), replica(t, url, "paused")
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context()) //nolint:errcheck // it has done its work
	if _, err := admin.Exec(t.Context(), "insert into tools.replicas (name) values ('without a lock')"); err != nil {
		t.Fatal(err)
	}
	await(t, "dead", func() bool { return !present(t, s, "without a lock") }) // so the survivor looks from now on
	live := func(name string) bool {
		t.Helper()
		rec, err := s.Enter(t.Context(), callOf(name))
		if err != nil {
			t.Fatal(err)
		}
		return rec.Live
	}
	if !live("killed") || !live("paused") {
		t.Fatal("a call is free although its replica lives")
	}
	if err := paused.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := killed.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	await(t, "free", func() bool { return !live("killed") })
	t.Logf("the call of the killed replica was free after %v", time.Since(begin))
	if err := s.TakeOver(t.Context(), callOf("killed"), 1, store.Owner{ID: "survivor"}, lent); err != nil {
		t.Errorf("take over the call of the killed replica: %v", err)
	}
	if !live("paused") {
		t.Error("the call of a paused replica is free")
	}
	if err := s.TakeOver(t.Context(), callOf("paused"), 1, store.Owner{ID: "survivor"}, lent); err == nil {
		t.Error("the call of a paused replica is taken over")
	}
}
