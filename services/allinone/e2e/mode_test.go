package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// changers are agents whose turns change their mode on the way.
const changers = planner + "  worker: {profile: full, prompt: Work., tools: [Bash, Write]}\n"

func (s *system) setMode(t *testing.T, session, mode, further string) reply {
	t.Helper()
	return s.call(t, http.MethodPost, "/v1/"+session+":setPermissionMode", `{"permissionMode":"PERMISSION_MODE_`+mode+`"`+further+`}`)
}

// TestTheModeOfARunningTurnChanges changes the mode while a command runs, and while a call waits for a person.
func TestTheModeOfARunningTurnChanges(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.scenario, o.agents = filepath.Join("testdata", "plan.yaml"), changers
		o.env = append(o.env, "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
		s := start(t, o)
		running, waits := s.session(t, "worker"), s.session(t, "planner")
		wants(t, s.setMode(t, waits, "PLAN", ""), http.StatusBadRequest, "TURN_NOT_ACTIVE")

		// The next decision is one of the same step.
		turn := made(t, s.call(t, http.MethodPost, "/v1/"+running+"/turns", `{"text":"wait and write"}`))
		until(t, "the command runs", func() bool { return s.call(t, http.MethodGet, "/v1/"+running+"/files/begun", "").code == http.StatusOK })
		wants(t, s.setMode(t, running, "BYPASS", ""), http.StatusBadRequest, `"permission_mode"`)
		wants(t, s.setMode(t, running, "PLAN", `,"turn":"`+running+`/turns/other"`), http.StatusBadRequest, "TURN_NOT_ACTIVE")
		wants(t, s.setMode(t, running, "PLAN", `,"turn":"`+turn+`"`), http.StatusOK, turn)
		wants(t, s.call(t, http.MethodPut, "/v1/"+running+"/files/go", "go", "Content-Type", "application/octet-stream"), http.StatusCreated, "")
		frames := s.ends(t, running, "COMPLETE", "Bash OK", "Write DENIED", "the mode plan denies changes")
		if got := modes(frames); !slices.Equal(got, []string{"PERMISSION_MODE_DEFAULT PERMISSION_MODE_PLAN default"}) {
			t.Errorf("the mode changed %q", got)
		}
		wants(t, s.setMode(t, running, "DEFAULT", `,"turn":"`+turn+`"`), http.StatusBadRequest, "TURN_NOT_ACTIVE")

		// A call that waits is decided on again; every process is killed after the change was accepted.
		made(t, s.call(t, http.MethodPost, "/v1/"+waits+"/turns", `{"text":"write"}`))
		w := s.waitsSoon(t, waits)
		for range 2 {
			wants(t, s.setMode(t, waits, "PLAN", `,"requestId":"once"`), http.StatusOK, w.Turn)
		}
		wants(t, s.setMode(t, waits, "DEFAULT", `,"requestId":"once"`), http.StatusConflict, "REQUEST_ID_REUSED")
		s.kill()
		s = s.restart(t)
		if r := s.resolve(t, waits, w.approval(true, "")); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		frames = s.ends(t, waits, "COMPLETE", "Write DENIED", "the mode plan denies changes")
		if got := modes(frames); !slices.Equal(got, []string{"PERMISSION_MODE_DEFAULT PERMISSION_MODE_PLAN default"}) {
			t.Errorf("the mode changed %q", got)
		}
		if _, err := os.Stat(s.file(waits, "a.txt")); !o.four && !os.IsNotExist(err) {
			t.Errorf("the file is there: %v", err)
		}

		// Out of the mode plan without a plan: the waiting question stays, and what follows needs none.
		third := s.session(t, "planner")
		made(t, s.call(t, http.MethodPost, "/v1/"+third+"/turns", `{"text":"plan it","options":{"permissionMode":"PERMISSION_MODE_PLAN"}}`))
		first := s.waitsSoon(t, third)
		wants(t, s.setMode(t, third, "ACCEPT_EDITS", ""), http.StatusOK, first.Turn)
		until(t, "the change is in the log", func() bool {
			return strings.Contains(s.call(t, http.MethodGet, "/v1/"+third+"/events?page_size=1000", "").body, `"permissionModeChanged"`)
		})
		if r := s.resolve(t, third, first.approval(false, "")); r.code != http.StatusOK {
			t.Fatalf("the refusal: %d %s", r.code, r.body)
		}
		s.ends(t, third, "COMPLETE", "Write DENIED", "ExitPlanMode REFUSED", "Write OK")
	})
}
