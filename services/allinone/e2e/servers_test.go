package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// startServer runs an all-in-one server on a database that others use as well, with a
// data directory of its own.
func startServer(t *testing.T, database string, env ...string) *system {
	t.Helper()
	return start(t, options{
		database: database, scenario: filepath.Join("testdata", "servers.yaml"),
		env: append([]string{"FAIRLEAD_SESSION_LEASE_TTL=1s"}, env...),
	})
}

// says runs a turn and returns its answer.
func (s *system) says(t *testing.T, session, text string) string {
	t.Helper()
	return strings.TrimSpace(last(t, s.turn(t, session, text), "COMPLETE").field("turnFinished", "finalText"))
}

// holds reports whether a server has a session's workspace on its disk.
func (s *system) holds(session string) bool {
	return exists(filepath.Join(s.options.data, "sandbox", "default", strings.TrimPrefix(session, "sessions/")))
}

func TestTwoServersOnOnePostgresHaveTheSameFiles(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a, b := startServer(t, database), startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	for i := range 8 {
		at := a
		if i%2 == 0 {
			at = b
		}
		if got := at.says(t, session, "cat f"); got != "kept" {
			t.Errorf("turn %d finds %q", i, got)
		}
	}
	if a.holds(session) == b.holds(session) {
		t.Errorf("the workspace is on both servers, or on none: %v", a.holds(session))
	}
}

func TestEverythingOfASessionIsThereOnTheOtherServer(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f") // on a: there is no other
	b := startServer(t, database)

	checkpoint := made(t, b.call(t, http.MethodPost, "/v1/"+session+"/checkpoints", `{}`))
	b.says(t, session, "echo changed > f")
	b.rewind(t, session, `{"checkpoint":"`+checkpoint+`"}`)
	if got := b.says(t, session, "cat f"); got != "kept" {
		t.Errorf("after the rewind there is %q", got)
	}
	fork := made(t, b.call(t, http.MethodPost, "/v1/"+session+":fork", `{}`))
	if got := a.says(t, fork, "cat f"); got != "kept" {
		t.Errorf("the fork has %q", got)
	}
	if r := b.call(t, http.MethodGet, "/v1/"+session+":export?format=archive", ""); r.code != http.StatusOK || len(r.body) == 0 {
		t.Errorf("the export is %d %s", r.code, r.body)
	}
	testOperation(t, a, b, session)
	if r := b.call(t, http.MethodDelete, "/v1/"+session, ""); r.code != http.StatusOK {
		t.Fatalf("delete: %d %s", r.code, r.body)
	}
	until(t, "the files are deleted on the other server", func() bool { return !a.holds(session) })
}

// testOperation looks at an operation, and ends it, on the server that does not run it.
func testOperation(t *testing.T, a, b *system, session string) {
	t.Helper()
	operation := b.says(t, session, "in the background")
	read := func(s *system) string { return s.call(t, http.MethodGet, "/v1/"+operation, "").body }
	for _, s := range []*system{a, b} {
		until(t, "its output is told", func() bool { return strings.Contains(read(s), "begun") })
	}
	b.says(t, session, "touch go")
	until(t, "it ends", func() bool { return strings.Contains(read(b), "SUCCEEDED") })
	b.says(t, session, "rm go")
	operation = a.says(t, session, "in the background")
	for _, s := range []*system{a, b} {
		if r := s.call(t, http.MethodPost, "/v1/"+operation+":cancel", `{}`); r.code != http.StatusOK {
			t.Errorf("cancel: %d %s", r.code, r.body)
		}
	}
	until(t, "it is cancelled", func() bool { return strings.Contains(read(b), "CANCELLED") })
}

// TestAStoppedServerComesBackWithItsFiles asks the other one meanwhile: its turn says on
// which server the files are, waits, and finds them.
func TestAStoppedServerComesBackWithItsFiles(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	b := startServer(t, database)
	name, err := os.ReadFile(filepath.Join(a.options.data, "sandbox", ".node"))
	if err != nil {
		t.Fatal(err)
	}
	a.stop(t)
	warned := false
	frames := b.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"cat f"}`, func(f frame) bool {
		if f.event != "warning" || warned {
			return true
		}
		warned = true
		if !strings.Contains(f.data, strings.TrimSpace(string(name))) || !strings.Contains(f.data, "start it again with its data directory") {
			t.Errorf("the warning is %s", f.data)
		}
		a.options.addrs = nil // it has other addresses now
		a = a.restart(t)
		return true
	})
	if got := last(t, frames, "COMPLETE").field("turnFinished", "finalText"); !strings.HasPrefix(got, "kept") || !warned {
		t.Errorf("warned %v; it finds %q: %s", warned, got, events(frames))
	}
	if b.holds(session) || !a.holds(session) {
		t.Error("the workspace was made again elsewhere")
	}
	if got := a.says(t, session, "cat f"); got != "kept" {
		t.Errorf("the next turn finds %q", got)
	}
}

// TestAnOperationOfAKilledServerNamesIt ends an operation through another server, once while
// the server that runs it is away, and once when it is back.
func TestAnOperationOfAKilledServerNamesIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	b := startServer(t, database)
	operation := b.says(t, session, "in the background")
	name, err := os.ReadFile(filepath.Join(a.options.data, "sandbox", ".node"))
	if err != nil {
		t.Fatal(err)
	}
	a.kill()
	r := b.call(t, http.MethodPost, "/v1/"+operation+":cancel", `{}`)
	if r.code != http.StatusServiceUnavailable || !strings.Contains(r.body, "NODE_AWAY") || !strings.Contains(r.body, strings.TrimSpace(string(name))) {
		t.Errorf("cancel: %d %s", r.code, r.body)
	}
	a.options.addrs = nil
	a.restart(t)
	until(t, "it is cancelled", func() bool {
		return b.call(t, http.MethodPost, "/v1/"+operation+":cancel", `{}`).code == http.StatusOK
	})
	if got := b.says(t, session, "cat f"); got != "kept" {
		t.Errorf("the next turn finds %q", got)
	}
}

// TestAServerWhoseDataWasReplacedSaysThatFilesAreLost has no other server: the files are
// on one that does not exist any more.
func TestAServerWhoseDataWasReplacedSaysThatFilesAreLost(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	a.stop(t)
	b := startServer(t, database, "FAIRLEAD_SESSION_SANDBOX_LOST_AFTER=1s")
	frames := b.turn(t, session, "cat f")
	last(t, frames, "COMPLETE")
	if event := moved(t, frames); event.field("workspaceMoved", "empty") != "true" || !strings.Contains(event.data, "all files that were in it are lost") {
		t.Errorf("the event is %s", event.data)
	}
	if got := b.says(t, session, "echo again > f; cat f"); got != "again" {
		t.Errorf("the next turn says %q", got)
	}
}

// TestAServerKilledInTheMiddleOfACallGoesOnWithItsFiles kills one server while a command runs
// on the disk of the other: the command runs once, and the turn ends.
func TestAServerKilledInTheMiddleOfACallGoesOnWithItsFiles(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	b := startServer(t, database)
	var turn struct{ Turn struct{ Name string } }
	r := a.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"echo run >> runs; until [ -e go ]; do sleep 0.05; done; cat f"}`)
	if err := json.Unmarshal([]byte(r.body), &turn); err != nil || r.code != http.StatusOK {
		t.Fatalf("%d %s", r.code, r.body)
	}
	workspace := filepath.Join(a.options.data, "sandbox", "default", strings.TrimPrefix(session, "sessions/"), "workspace")
	until(t, "the command runs", func() bool { return exists(filepath.Join(workspace, "runs")) })
	b.kill() // it may hold the session, while its command runs at a
	if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the turn ends", func() bool {
		return strings.Contains(a.call(t, http.MethodGet, "/v1/"+session, "").body, `"finishedTurns":2`)
	})
	if got := a.says(t, session, "cat runs f"); got != "run\nkept" {
		t.Errorf("it finds %q", got)
	}
}

// TestACallIsCancelledThroughTheOtherServer interrupts a turn whose command runs on the
// disk of one server by a request to the other.
func TestACallIsCancelledThroughTheOtherServer(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startServer(t, database)
	session := a.session(t, "coder")
	a.says(t, session, "echo kept > f")
	b := startServer(t, database)
	for _, at := range []*system{a, b} {
		turn := made(t, at.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"touch runs; sleep 600"}`))
		until(t, "the command runs", func() bool { return exists(a.file(session, "runs")) })
		if r := b.call(t, http.MethodPost, "/v1/"+session+":interrupt", `{}`); r.code != http.StatusOK {
			t.Fatalf("interrupt: %d %s", r.code, r.body)
		}
		if got := a.waitFor(t, turn); got.State != "TURN_STATE_INTERRUPTED" && got.State != "TURN_STATE_CANCELLED" {
			t.Errorf("the turn ended %s", got.State)
		}
		if got := b.says(t, session, "rm runs; cat f"); got != "kept" {
			t.Errorf("afterwards there is %q", got)
		}
	}
}
