package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// startTwo starts two session replicas on one Postgres, each behind a gateway of its own. Their leases last an hour: no
// test waits for their end.
func startTwo(t *testing.T) (one, two *system) {
	t.Helper()
	scenario, err := filepath.Abs(filepath.Join("testdata", "takeover.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := options{data: sandboxDir(t), scenario: scenario, database: pgtest.New(t), addrs: map[string]string{}}
	for _, name := range []string{"http", "http2", "session", "session-peer", "session2", "session2-peer", "tools", "tools-peer", "sandbox-peer"} {
		o.addrs[name] = freeAddress(t)
	}
	a := o.addrs
	one = &system{http: a["http"], grpc: a["session"], toolsGRPC: a["tools"], options: o}
	two = &system{http: a["http2"], grpc: a["session2"], toolsGRPC: a["tools"], options: o}
	t.TempDir() // it has the logs, and goes after they were shown
	t.Cleanup(func() { one.stop(t) })
	t.Cleanup(func() { two.stop(t) })
	one.spawn(t, "sandbox", []string{"--peer", a["sandbox-peer"], "--ops", "", "--data", filepath.Join(o.data, "sandbox")})
	one.spawn(t, "tools", []string{"--public", a["tools"], "--peer", a["tools-peer"], "--ops", "", "--data", filepath.Join(o.data, "tools"), "--sandbox", a["sandbox-peer"], "--session", a["session2-peer"]})
	for s, name := range map[*system]string{one: "session", two: "session2"} {
		s.spawn(t, "session", []string{"--public", a[name], "--peer", a[name+"-peer"], "--ops", "", "--data", filepath.Join(o.data, name),
			"--lease-ttl", "1h", "--tools", a["tools-peer"], "--sandbox", a["sandbox-peer"], "--config", writeConfig(t, s.sessionConfig())})
		s.spawn(t, "gateway", []string{"--public=", "--http", s.http, "--session", a[name+"-peer"], "--tools", a["tools-peer"]})
	}
	one.waitReady(t)
	two.waitReady(t)
	return one, two
}

// speaks sends a message through a replica and waits for the answer's first words. A replica that looks for work at that
// moment does not take the session at once, and then another one may: speaks goes on until the first one holds one.
func speaks(t *testing.T, s *system, message string) (session string) {
	t.Helper()
	for range 10 {
		session = s.session(t, "coder")
		if r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"`+message+`"}`); r.code != http.StatusOK {
			t.Fatalf("send: %d %s", r.code, r.body)
		}
		s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "text.delta" })
		if s.hasLease(t, session) {
			return session
		}
	}
	t.Fatal("another replica takes every session")
	return ""
}

// hasLease reports whether a system's replica holds a session. The replica writes its name into its log.
func (s *system) hasLease(t *testing.T, session string) bool {
	t.Helper()
	log, err := os.ReadFile(s.replica(t).log.Name())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), s.options.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	var holder string
	if err := conn.QueryRow(t.Context(), "select holder from session.sessions where session = $1", strings.TrimPrefix(session, "sessions/")).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	return holder != "" && strings.Contains(string(log), `"replica":"`+holder+`"`)
}

// replica is the session service of a system.
func (s *system) replica(t *testing.T) *process {
	t.Helper()
	for _, p := range s.processes {
		if p.name == "session" {
			return p
		}
	}
	t.Fatal("there is no session service")
	return nil
}

// TestTurnsGoOnAtOnceWhenTheirReplicaIsKilled kills a replica in the middle of answers. Another one goes on although
// the leases last for another hour.
func TestTurnsGoOnAtOnceWhenTheirReplicaIsKilled(t *testing.T) {
	t.Parallel()
	one, two := startTwo(t)
	sessions := []string{speaks(t, one, "long"), speaks(t, one, "long"), speaks(t, one, "long")}
	killed := one.replica(t)
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := <-killed.done; err == nil {
		t.Error("the killed process ended by itself")
	}
	killed.done <- nil // its end is no fault
	var all sync.WaitGroup
	for _, session := range sessions {
		all.Go(func() {
			r := two.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "step.restarted" })
			t.Logf("the turn went on after %v, at %d events", time.Since(begun).Round(time.Millisecond), len(r))
			after := "/v1/" + session + "/events?after_seq=" + r[len(r)-1].id
			two.stream(t, http.MethodGet, after, "", func(f frame) bool { return f.event != "text.delta" })
			wants(t, two.call(t, http.MethodPost, "/v1/"+session+":interrupt", "{}"), http.StatusOK, "")
			two.stream(t, http.MethodGet, after, "", func(f frame) bool { return f.event != "turn.finished" })
		})
	}
	all.Wait()
}

// looksForTheDead waits until a living replica has looked for dead ones twice: until it finds one without a lock.
func looksForTheDead(t *testing.T, database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it has done its work
	if _, err := conn.Exec(t.Context(), "insert into session.replicas (name) values ('without a lock')"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // Postgres sends no signal
		var dead bool
		if err := conn.QueryRow(t.Context(), "select dead_at is not null from session.replicas where name = 'without a lock'").Scan(&dead); err != nil {
			t.Fatal(err)
		}
		if dead {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no replica looks for dead ones")
		}
	}
}

// TestAPausedReplicaKeepsItsTurns stops a replica in the middle of an answer and wakes it up: its connection to the
// database lives, so that no other replica takes its session before its lease ends.
func TestAPausedReplicaKeepsItsTurns(t *testing.T) {
	t.Parallel()
	one, two := startTwo(t)
	session := speaks(t, one, "go")
	paused := one.replica(t).cmd.Process
	if err := paused.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = paused.Signal(syscall.SIGCONT) })
	looksForTheDead(t, one.options.database)
	if err := paused.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	frames := two.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" })
	if got := events(frames); strings.Contains(got, "step.restarted") {
		t.Errorf("the turn was taken from the paused replica: %v", got)
	}
}
