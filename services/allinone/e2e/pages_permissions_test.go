package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// waitsAgain waits for another call of a session that waits.
func (s *system) waitsAgain(t *testing.T, session string, before *waiting) (w *waiting) {
	t.Helper()
	until(t, "another call of "+session+" waits", func() bool {
		w = s.waits(t, session)
		return w != nil && (before == nil || w.CallID != before.CallID || w.Question.ID != before.Question.ID)
	})
	return w
}

// ends waits for the end of a session's only turn, and checks what the model read of its calls.
func (s *system) ends(t *testing.T, session, state string, wants ...string) []frame {
	t.Helper()
	frames := s.whole(t, session)
	last(t, frames, state)
	prints(t, strings.Join(results(frames), "\n"), wants...)
	return frames
}

// startPermissions runs a server with the agents of the page.
func startPermissions(t *testing.T, p *page, further ...string) *system {
	t.Helper()
	return start(t, options{
		scenario: filepath.Join("testdata", "pages.yaml"), tools: "mcp-allow-private: [127.0.0.0/8]",
		agents: indent(section(t, p.block(t, "yaml", "fixer:"), []string{"session", "agents"})) + strings.Join(further, ""),
		env:    []string{"FAIRLEAD_SESSION_DEFAULT_AGENT=asker"},
	})
}

func TestTheProfilesOfThePageOnPermissions(t *testing.T) {
	t.Parallel()
	p := readPage(t, "permissions.md")
	s := startPermissions(t, p)
	sh := newShell(t, s)
	sh.file(t, "careful.yaml", section(t, p.block(t, "yaml", "careful:"), []string{"tools", "profiles", "careful"}))
	prints(t, sh.run(t, p.quoted(t, "fairlead profiles create careful")), "Bash(git push *)", "Read(.env)")
	wants(t, s.call(t, http.MethodPost, "/v1/agents?agentId=guarded", `{"profile":"careful","prompt":"p","tools":["Bash","Read","Write"]}`), http.StatusOK, "guarded")
	session := s.session(t, "guarded")
	made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"do what careful decides"}`))
	w := s.waitsSoon(t, session)
	if r := s.resolve(t, session, w.approval(false, "")); r.code != http.StatusOK {
		t.Fatalf("the refusal: %d %s", r.code, r.body)
	}
	frames := s.ends(t, session, "INTERRUPTED", "Bash OK git version", "Read DENIED", "deny Read(.env)", "Write DENIED", "Bash REFUSED", "interrupt Bash(rm -rf *)", "Bash INTERRUPTED The turn was stopped before the call was made.")
	if reason := last(t, frames, "INTERRUPTED").field("turnFinished", "error", "reason"); reason != "PERMISSION_INTERRUPT" {
		t.Errorf("the turn ended for the reason %q", reason)
	}

	vendor := []string{"Write DENIED", "deny Write(./vendor/**), a rule of the agent or the session", "Write OK"}
	s.reads(t, s.session(t, "fixer"), "write into vendor", vendor...)
	s.reads(t, s.session(t, "fixer"), "look around", "Read ERROR") // the disabled LS is not offered
	hidden := s.session(t, "fixer")
	if r := s.call(t, http.MethodGet, "/v1/"+hidden+"/tools?pageSize=1000", ""); !strings.Contains(r.body, `"tools/Read"`) || strings.Contains(r.body, `"tools/LS"`) {
		t.Errorf("the tools for clients, also at /mcp: %d %s", r.code, r.body)
	}
	s.reads(t, hidden, "list", "LS DENIED", "disabled tool LS, a rule of the agent or the session")
	s.reads(t, s.session(t, "coder"), "look around", "LS OK")
	sh.file(t, "no-writes.yaml", "deny: [Write]\n")
	prints(t, sh.run(t, p.quoted(t, "fairlead run --permissions"), "run --", "run --agent coder --"), "There is no Write")
	filter := p.quoted(t, `{"deny": ["Write(./vendor/**)"]`)
	s.reads(t, made(t, s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"coder","permissions":`+filter+`}`)), "write into vendor", vendor...)

	planned := s.session(t, "coder")
	made(t, s.call(t, http.MethodPost, "/v1/"+planned+"/turns", `{"text":"write into vendor",`+p.quoted(t, `"options": {"permissionMode"`)+`}`))
	s.ends(t, planned, "COMPLETE", "Write DENIED", "the mode plan denies changes")
}

func TestTheAnswersOfThePageOnPermissions(t *testing.T) {
	t.Parallel()
	p := readPage(t, "permissions.md")
	wiki := startWiki(t)
	s := startPermissions(t, p, "  curious: {profile: full, prompt: p, tools: [AskUserQuestion], mcp-servers: {wiki: {url: \"http://"+wiki.address+"\"}}}\n")
	sh := newShell(t, s)
	t.Run("a plan", func(t *testing.T) { testPagePlan(t, p, s, sh) })
	t.Run("an approval", func(t *testing.T) { testPageApprovals(t, p, s, sh) })
	t.Run("a question", func(t *testing.T) { testPageQuestions(t, p, s, sh) })
	p.done(t, "fairlead permissions explain") // TestExamplesOfThePermissionsPage
}

func testPageApprovals(t *testing.T, p *page, s *system, sh *shell) {
	sh.file(t, "arguments.json", `{"command":"echo edited"}`)
	session := s.session(t, "asker")
	made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"make things"}`))
	w := s.waitsSoon(t, session)
	prints(t, sh.run(t, p.next(t, "fairlead approvals")), w.CallID, strings.TrimPrefix(session, "sessions/"), "make test")
	sh.run(t, p.next(t, "fairlead approve 0"), "06h1j2kvp5pq37223uj2glj7c8.1.0", w.CallID)
	w = s.waitsAgain(t, session, w)
	sh.run(t, p.next(t, "fairlead approve CALL --session-scope"), "CALL", w.CallID)
	w = s.waitsAgain(t, session, w) // one call ran without a question
	sh.run(t, p.next(t, "fairlead approve CALL --edit"), "CALL", w.CallID)
	w = s.waitsAgain(t, session, w)
	sh.run(t, p.next(t, "fairlead deny CALL --comment 'write"), "CALL", w.CallID)
	frames := s.ends(t, session, "COMPLETE", "edited", "write to notes.md instead")
	if count(frames, "tool_call.finished") != 5 || count(frames, "approval.requested") != 4 {
		t.Errorf("the log is %s", events(frames))
	}
	grants := p.next(t, "fairlead permissions grants")
	out := sh.run(t, grants)
	prints(t, out, "Bash(make test *)")
	grant := strings.Fields(strings.Split(out, "\n")[1])[0]
	sh.run(t, p.next(t, "fairlead permissions revoke"), "g0a1b2c3", grant)
	if out = sh.run(t, grants); strings.Contains(out, "Bash(make test *)") {
		t.Errorf("after the revocation there is %s", out)
	}
}

func testPagePlan(t *testing.T, p *page, s *system, sh *shell) {
	cmd := sh.command(t, p.next(t, "fairlead run --mode plan"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var session string
	until(t, "a plan waits", func() bool {
		for _, line := range strings.Split(sh.run(t, "fairlead approvals"), "\n") {
			if f := strings.Fields(line); len(f) > 4 && strings.Contains(line, "ExitPlanMode") {
				session = "sessions/" + f[1]
			}
		}
		return session != ""
	})
	w := s.waits(t, session)
	prints(t, sh.run(t, p.next(t, "fairlead approvals CALL"), "CALL", w.CallID), "1. Rename it")
	sh.run(t, p.next(t, "fairlead deny CALL --comment 'keep"), "CALL", w.CallID)
	w = s.waitsAgain(t, session, w)
	sh.run(t, p.next(t, "fairlead approve CALL --mode"), "CALL", w.CallID)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the turn: %v\n%s", err, &out)
	}
	s.ends(t, session, "COMPLETE", "ExitPlanMode REFUSED", "keep the old name as an alias", "ExitPlanMode OK", "Write OK")
}

func testPageQuestions(t *testing.T, p *page, s *system, sh *shell) {
	session := s.session(t, "curious")
	made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"ask a person"}`))
	w := s.waitsSoon(t, session)
	sh.run(t, p.next(t, "fairlead answer CALL 2"), "CALL", w.CallID)
	w = s.waitsAgain(t, session, w)
	sh.run(t, p.next(t, "fairlead answer CALL --content"), "CALL", w.CallID)
	w = s.waitsAgain(t, session, w)
	sh.run(t, p.next(t, "fairlead answer CALL --decline"), "CALL", w.CallID)
	s.ends(t, session, "COMPLETE", "Which database? SQLite", "API, UI", "the port: accept 8080", "AskUserQuestion REFUSED")

	// The same over REST, with the fields that the page names.
	session = s.session(t, "curious")
	made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"ask once"}`))
	w = s.waitsSoon(t, session)
	prints(t, sh.run(t, p.next(t, "fairlead permissions mode"), "SESSION", session), w.Turn+" goes on in the mode plan")
	prints(t, sh.run(t, p.next(t, "curl"), "SESSION", session), w.Turn)
	content := strings.NewReplacer("the question", "Which?", "a label", "B").Replace(p.quoted(t, `{"answers"`))
	path := strings.ReplaceAll(strings.TrimPrefix(p.quoted(t, "POST /v1/sessions/{session}/questions:answer"), "POST "), "sessions/{session}", session)
	r := s.call(t, http.MethodPost, path, fmt.Sprintf(`{"callId":%q,"questionId":%q,"action":"QUESTION_ACTION_ACCEPT","contentJson":%q}`, w.CallID, w.Question.ID, content))
	wants(t, r, http.StatusOK, "")
	if got := modes(s.ends(t, session, "COMPLETE", "Which? B")); len(got) != 1 {
		t.Errorf("the mode changed %q", got)
	}
}
