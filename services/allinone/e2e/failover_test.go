package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// TestADatabaseFailsOverInTheMiddleOfACall makes the standby the primary while a command
// runs, and leaves the connections to the old one, which refuses writes, open.
func TestADatabaseFailsOverInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			testFailover(t, four)
		})
	}
}

func testFailover(t *testing.T, four bool) {
	primary, standby, address := servers(t)
	s := start(t, options{four: four, database: address.URL("postgres"), scenario: filepath.Join("testdata", "servers.yaml")})
	sessions := []string{s.session(t, "coder"), s.session(t, "coder"), s.session(t, "coder")}
	var turns []string
	for _, session := range sessions {
		turns = append(turns, made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"echo run >> runs; until [ -e go ]; do sleep 0.05; done; echo ran"}`)))
		until(t, "the command runs", func() bool { return exists(s.file(session, "runs")) })
	}
	if err := primary.Set(t.Context(), "default_transaction_read_only", "on"); err != nil {
		t.Fatal(err)
	}
	stores := []string{s.http}
	if four {
		stores = []string{s.options.addrs["session-ops"], s.options.addrs["tools-ops"]}
	}
	for _, address := range stores {
		until(t, "it is not ready", func() bool { return ready(t.Context(), "http://"+address+"/readyz") != nil })
	}
	for _, session := range sessions { // the commands end while nothing can be written
		if err := os.WriteFile(s.file(session, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := standby.Promote(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	address.To(standby)
	begin := time.Now()
	for _, address := range stores {
		until(t, "it is ready again", func() bool { return ready(t.Context(), "http://"+address+"/readyz") == nil })
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("writes went on after %v", took)
	}
	for i, session := range sessions {
		if got := s.waitFor(t, turns[i]); got.State != "TURN_STATE_COMPLETE" {
			t.Errorf("the turn ended %s", got.State)
		}
		if got := s.says(t, session, "cat runs"); got != "run" {
			t.Errorf("afterwards there is %q", got)
		}
	}
}

// servers are a primary and its standby, behind one address that leads to the primary.
func servers(t *testing.T) (primary, standby *pgserver.Server, address *pgserver.Switch) {
	t.Helper()
	if os.Getenv(pgtest.Env) == "" {
		t.Skip("there is no Postgres; 'make test' starts one")
	}
	primary, err := pgserver.StartDurable(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Stop() })
	if standby, err = primary.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	if address, err = pgserver.NewSwitch(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = address.Close() })
	return primary, standby, address
}

// file is the path of a file in a session's workspace.
func (s *system) file(session, name string) string {
	return filepath.Join(s.options.data, "sandbox", "default", strings.TrimPrefix(session, "sessions/"), "workspace", name)
}
