package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// startTwo starts two session replicas on one Postgres, each behind a gateway of its own. Their leases last a minute,
// so that what goes on earlier does not wait for their end.
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
			"--lease-ttl", "1m", "--tools", a["tools-peer"], "--sandbox", a["sandbox-peer"], "--config", writeConfig(t, s.sessionConfig())})
		s.spawn(t, "gateway", []string{"--public=", "--http", s.http, "--session", a[name+"-peer"], "--tools", a["tools-peer"]})
	}
	one.waitReady(t)
	two.waitReady(t)
	return one, two
}

// speaks sends a message through a replica, which then holds the session, and waits for the answer's first words.
func speaks(t *testing.T, s *system) (session string) {
	t.Helper()
	session = s.session(t, "coder")
	if r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"go"}`); r.code != http.StatusOK {
		t.Fatalf("send: %d %s", r.code, r.body)
	}
	s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "text.delta" })
	return session
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
// the leases last for another minute.
func TestTurnsGoOnAtOnceWhenTheirReplicaIsKilled(t *testing.T) {
	t.Parallel()
	one, two := startTwo(t)
	sessions := []string{speaks(t, one), speaks(t, one), speaks(t, one)}
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
			two.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" })
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 50*time.Second {
		t.Errorf("the turns ended after %v: their leases ended first", took)
	}
}

// TestAPausedReplicaKeepsItsTurns stops a replica in the middle of an answer and wakes it up: its connection to the
// database lives, so that nobody takes its session before its lease ends.
func TestAPausedReplicaKeepsItsTurns(t *testing.T) {
	t.Parallel()
	one, two := startTwo(t)
	session := speaks(t, one)
	paused := one.replica(t).cmd.Process
	if err := paused.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = paused.Signal(syscall.SIGCONT) })
	time.Sleep(8 * time.Second) //nolint:forbidigo // nothing must happen meanwhile: the other one looks many times
	if err := paused.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	frames := two.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" })
	if got := events(frames); strings.Contains(got, "step.restarted") {
		t.Errorf("the turn was taken from the paused replica: %v", got)
	}
}
