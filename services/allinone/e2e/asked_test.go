package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPlanThatIsNotAnswered has a plan wait until its time is up, and one whose turn is interrupted.
func TestAPlanThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	plans := func(s *system) (session, turn string, w *waiting) {
		session = s.session(t, "planner")
		turn = made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"plan it","options":{"permissionMode":"PERMISSION_MODE_PLAN"}}`))
		return session, turn, s.waitsSoon(t, session)
	}
	o := options{scenario: filepath.Join("testdata", "plan.yaml"), agents: planner}

	s := start(t, o)
	session, turn, w := plans(s)
	wants(t, s.call(t, http.MethodPost, "/v1/"+session+":interrupt", `{}`), http.StatusOK, turn)
	frames := s.whole(t, session)
	last(t, frames, "INTERRUPTED")
	if got := results(frames); len(got) != 2 || !strings.HasPrefix(got[1], "ExitPlanMode ") || strings.HasPrefix(got[1], "ExitPlanMode OK") || len(modes(frames)) != 0 {
		t.Errorf("the interrupted turn has the results %q and the modes %q", got, modes(frames))
	}
	if r := s.resolve(t, session, w.approval(true, "")); r.code != http.StatusBadRequest || !strings.Contains(r.body, "CALL_ENDED") {
		t.Errorf("an approval after the interrupt: %d %s", r.code, r.body)
	}
	if exists(s.file(session, "a.txt")) {
		t.Error("the plan was carried out")
	}

	o.env = []string{"FAIRLEAD_SESSION_ANSWER_TTL=2s"}
	s = start(t, o)
	session, _, w = plans(s)
	frames = s.whole(t, session) // both plans of the script expire
	last(t, frames, "COMPLETE")
	got := results(frames)
	for i, want := range []string{"Write DENIED", "ExitPlanMode EXPIRED", "ExitPlanMode EXPIRED", "Write DENIED"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("result %d of %q is not %s", i, got, want)
		}
	}
	prints(t, strings.Join(got, "\n"), "The mode plan still holds: nothing may be changed.")
	if len(modes(frames)) != 0 || exists(s.file(session, "a.txt")) {
		t.Errorf("the mode changed %q", modes(frames))
	}
	if r := s.resolve(t, session, w.approval(true, "")); r.code != http.StatusBadRequest || !strings.Contains(r.body, "CALL_ENDED") {
		t.Errorf("an approval that comes too late: %d %s", r.code, r.body)
	}
}

// TestAServersQuestionIsForTheUserOfTheTurn has an MCP server ask in the turn of one user, and another one look for it and answer.
func TestAServersQuestionIsForTheUserOfTheTurn(t *testing.T) {
	t.Parallel()
	wiki := startWiki(t)
	s := start(t, options{
		scenario: filepath.Join("testdata", "pages.yaml"), tools: "mcp-allow-private: [127.0.0.0/8]",
		agents: "  curious: {profile: full, prompt: p, tools: [Read], mcp-servers: {wiki: {url: \"http://" + wiki.address + "\"}}}\n",
	})
	_, admin := s.key(t, "", `{"title":"first"}`)
	user := func(name string) []string {
		wants(t, s.call(t, http.MethodPost, "/v1/users?userId="+name, `{"role":"ROLE_USER"}`, bearer(admin)...), http.StatusOK, "")
		_, secret := s.key(t, admin, `{"user":"users/`+name+`","title":"`+name+`"}`)
		return bearer(secret)
	}
	ann, ben := user("ann"), user("ben")
	session := made(t, s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"curious"}`, ann...))
	turn := made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"let the server ask"}`, ann...))
	list := func(of []string) string { return s.call(t, http.MethodGet, "/v1/approvals", "", of...).body }
	until(t, "the question is in the list of the turn's user", func() bool { return strings.Contains(list(ann), "Which port?") })
	var waits struct{ Approvals []*waiting }
	if err := json.Unmarshal([]byte(list(ann)), &waits); err != nil || len(waits.Approvals) != 1 {
		t.Fatalf("%v: %s", err, list(ann))
	}
	w := waits.Approvals[0]
	if got := list(ben); strings.Contains(got, w.CallID) || strings.Contains(got, "Which port?") {
		t.Errorf("another user sees %s", got)
	}
	answer := func(of []string, port int) reply {
		return s.call(t, http.MethodPost, "/v1/"+session+"/questions:answer",
			fmt.Sprintf(`{"callId":%q,"questionId":%q,"action":"QUESTION_ACTION_ACCEPT","contentJson":"{\"port\":%d}"}`, w.CallID, w.Question.ID, port), of...)
	}
	wants(t, answer(ben, 1), http.StatusNotFound, "SESSION_NOT_FOUND")
	wants(t, answer(ann, 8080), http.StatusOK, "")
	frames := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" || f.field("turn") != turn }, ann...)
	last(t, frames, "COMPLETE")
	if got := results(frames); !slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, "the port: accept 8080") }) {
		t.Errorf("the server heard %q", got)
	}
	if who := frames[slices.IndexFunc(frames, func(f frame) bool { return f.event == "question.resolved" })].field("questionResolved", "user"); who != "ann" {
		t.Errorf("the answer is of %q", who)
	}
}

// TestAnEditedCallRunsOnceAfterItsServerWasKilled kills the server once the edited call has begun, and before its answer
// reached a turn.
func TestAnEditedCallRunsOnceAfterItsServerWasKilled(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.scenario, o.agents = filepath.Join("testdata", "waiting.yaml"), waiters
		o.env = append(o.env, "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
		s := start(t, o)
		const odd = `printf '%s\\n' '\"é\\u003c \\t9007199254740993\"' >> runs` // bytes that another JSON writer would change
		first, w := s.asks(t, append1)
		second, v := s.asks(t, append1)
		body := func(w *waiting, command string) string {
			return w.approval(true, fmt.Sprintf(`,"updatedArgumentsJson":%q`, `{"command":"`+command+`"}`))
		}
		if r := s.resolve(t, first, body(w, odd+"; until [ -e go ]; do sleep 0.05; done")); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		until(t, "the edited call runs", func() bool { return s.call(t, http.MethodGet, "/v1/"+first+"/files/runs", "").code == http.StatusOK })
		if r := s.resolve(t, second, body(v, odd)); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		s.kill()
		s = s.restart(t)
		until(t, "the command may end", func() bool { // the sandbox may take a moment until it can be reached
			return s.call(t, http.MethodPut, "/v1/"+first+"/files/go", "go", "Content-Type", "application/octet-stream").code/100 == 2
		})
		for session, asked := range map[string]*waiting{first: w, second: v} {
			s.waitFor(t, asked.Turn)
			frames := s.whole(t, session)
			last(t, frames, "COMPLETE")
			got := results(frames)
			runs := s.call(t, http.MethodGet, "/v1/"+session+"/files/runs", "").body
			const want = `"é\u003c \t9007199254740993"` + "\n"
			if len(got) != 1 || count(frames, "approval.resolved") != 1 || runs != want {
				t.Errorf("%s: the results are %q, the command left %q, want %q", session, got, runs, want)
			}
		}
	})
}
