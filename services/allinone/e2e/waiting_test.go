package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// waiters is the agent whose commands wait for a person.
const waiters = "  waiter: {profile: ask-writes, prompt: Ask., tools: [Bash, AskUserQuestion]}\n"

// append1 is a command whose effect can be counted.
const append1 = "echo ran >> runs"

// startWaiter runs an all-in-one server on a database that others use as well.
func startWaiter(t *testing.T, database string) *system {
	t.Helper()
	return start(t, options{
		database: database, scenario: filepath.Join("testdata", "waiting.yaml"), agents: waiters,
		env: []string{"FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40"},
	})
}

// waiting is what ListApprovals says about a call.
type waiting struct {
	CallID   string `json:"callId"`
	Digest   string
	Turn     string
	Question struct{ ID string }
}

// waits returns the call of a session that waits for a person; nil without one.
func (s *system) waits(t *testing.T, session string) *waiting {
	t.Helper()
	var list struct{ Approvals []*waiting }
	r := s.call(t, http.MethodGet, "/v1/approvals?session="+session, "")
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.code != http.StatusOK || len(list.Approvals) > 1 {
		t.Fatalf("what waits in %s: %d %s", session, r.code, r.body)
	}
	if len(list.Approvals) == 0 {
		return nil
	}
	return list.Approvals[0]
}

// approval is an answer to a call, with the fields of further put into it.
func (w *waiting) approval(approved bool, further string) string {
	return fmt.Sprintf(`{"callId":%q,"digest":%q,"approved":%t%s}`, w.CallID, w.Digest, approved, further)
}

func (s *system) resolve(t *testing.T, session, body string) reply {
	t.Helper()
	return s.call(t, http.MethodPost, "/v1/"+session+"/approvals:resolve", body)
}

// runs returns what the commands of a session have written on the server's disk.
func (s *system) runs(t *testing.T, session string) string {
	t.Helper()
	text, err := os.ReadFile(s.file(session, "runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// whole returns the events of a session up to the end of its only turn.
func (s *system) whole(t *testing.T, session string) []frame {
	t.Helper()
	return s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" })
}

func count(frames []frame, event string) (n int) {
	for _, f := range frames {
		if f.event == event {
			n++
		}
	}
	return n
}

// refuses checks that another answer is refused with the decision that counts.
func (s *system) refuses(t *testing.T, session, body, decision string) {
	t.Helper()
	r := s.resolve(t, session, body)
	if r.code != http.StatusBadRequest || !strings.Contains(r.body, "CALL_ANSWERED") || !strings.Contains(r.body, decision) {
		t.Errorf("another answer gets %d %s, want CALL_ANSWERED with %s", r.code, r.body, decision)
	}
}

// TestWhatWaitsForAPersonOutlivesEveryProcess has turns and calls wait that one server asked about, kills it and another
// one, and answers on the other one when both are back. The side effects are counted on the disk.
func TestWhatWaitsForAPersonOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a := startWaiter(t, database) // the only one: it asks, and has the workspaces
	cases := map[string]func(t *testing.T, a *system) func(t *testing.T, a, b *system){
		"as the model asked":       waitApproved,
		"with other arguments":     waitEdited,
		"refused":                  waitRefused,
		"for another call's text":  waitMistaken,
		"the answer to a question": waitQuestion,
		"a call over MCP":          waitMCP,
		"fairlead call":            waitCommandLine,
	}
	answers := map[string]func(t *testing.T, a, b *system){}
	for name, begin := range cases {
		answers[name] = begin(t, a)
	}
	b := startWaiter(t, database)
	a.kill()
	b.kill()
	a, b = launch(t, a.options), launch(t, b.options)
	a.waitReady(t)
	b.waitReady(t)
	t.Run("answered", func(t *testing.T) {
		for name, answer := range answers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				answer(t, a, b)
			})
		}
	})
}

// asks begins a turn, and returns its session and the call that waits.
func (s *system) asks(t *testing.T, text string) (session string, w *waiting) {
	t.Helper()
	session = s.session(t, "waiter")
	made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", fmt.Sprintf(`{"text":%q}`, text)))
	return session, s.waitsSoon(t, session)
}

func (s *system) waitsSoon(t *testing.T, session string) (w *waiting) {
	t.Helper()
	until(t, "a call of "+session+" waits", func() bool { w = s.waits(t, session); return w != nil })
	return w
}

// once checks that the call of a session's only turn was asked about, answered and made once.
func (s *system) once(t *testing.T, session, asked, resolved, outcome string) {
	t.Helper()
	frames := s.whole(t, session)
	last(t, frames, "COMPLETE")
	if count(frames, asked) != 1 || count(frames, resolved) != 1 {
		t.Errorf("the log has %d %s and %d %s: %s", count(frames, asked), asked, count(frames, resolved), resolved, events(frames))
	}
	if got := results(frames); len(got) != 1 || !strings.Contains(got[0], " "+outcome+" ") {
		t.Errorf("the results are %q, want one %s", got, outcome)
	}
}

func waitApproved(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session, w := a.asks(t, append1)
	return func(t *testing.T, a, b *system) {
		if r := b.resolve(t, session, w.approval(true, "")); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		a.refuses(t, session, w.approval(false, ""), `"approved":"true"`)
		b.waitFor(t, w.Turn)
		for _, s := range []*system{a, b} {
			if r := s.resolve(t, session, w.approval(true, "")); r.code != http.StatusOK {
				t.Errorf("the same answer again: %d %s", r.code, r.body)
			}
			s.refuses(t, session, w.approval(false, ""), `"approved":"true"`)
		}
		a.once(t, session, "approval.requested", "approval.resolved", "OK")
		if got := a.runs(t, session); got != "ran\n" {
			t.Errorf("the command left %q", got)
		}
	}
}

func waitEdited(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session, w := a.asks(t, append1)
	return func(t *testing.T, a, b *system) {
		edited := w.approval(true, `,"updatedArgumentsJson":"{\"command\":\"echo edited >> runs\"}"`)
		if r := b.resolve(t, session, edited); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		a.refuses(t, session, w.approval(true, ""), "allowed with other arguments")
		b.waitFor(t, w.Turn)
		a.refuses(t, session, w.approval(true, `,"updatedArgumentsJson":"{\"command\":\"echo else >> runs\"}"`), "allowed with other arguments")
		a.once(t, session, "approval.requested", "approval.resolved", "OK")
		if got := a.runs(t, session); got != "edited\n" {
			t.Errorf("the command left %q", got)
		}
	}
}

func waitRefused(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session, w := a.asks(t, append1)
	return func(t *testing.T, a, b *system) {
		if r := b.resolve(t, session, w.approval(false, `,"comment":"not now"`)); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		a.refuses(t, session, w.approval(true, ""), `"approved":"false"`)
		b.waitFor(t, w.Turn)
		a.once(t, session, "approval.requested", "approval.resolved", "REFUSED")
		if got := a.runs(t, session); got != "" {
			t.Errorf("the command left %q", got)
		}
	}
}

// waitMistaken answers with the digest of another call's arguments: the call goes on waiting.
func waitMistaken(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session, w := a.asks(t, append1)
	_, other := a.asks(t, "echo other >> runs")
	return func(t *testing.T, a, b *system) {
		mistaken := *w
		mistaken.Digest = other.Digest
		if r := b.resolve(t, session, mistaken.approval(true, "")); r.code != http.StatusBadRequest || !strings.Contains(r.body, "DIGEST_MISMATCH") {
			t.Errorf("the answer for other arguments: %d %s", r.code, r.body)
		}
		if again := a.waits(t, session); again == nil || *again != *w {
			t.Errorf("then %v waits, want %v", again, w)
		}
		if r := b.resolve(t, session, w.approval(true, "")); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		b.waitFor(t, w.Turn)
		a.once(t, session, "approval.requested", "approval.resolved", "OK")
		if got := a.runs(t, session); got != "ran\n" {
			t.Errorf("the command left %q", got)
		}
	}
}

func waitQuestion(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session, w := a.asks(t, "ask me")
	return func(t *testing.T, a, b *system) {
		answer := func(s *system, label string) reply {
			body := fmt.Sprintf(`{"callId":%q,"questionId":%q,"action":"QUESTION_ACTION_ACCEPT","contentJson":%q}`, w.CallID, w.Question.ID, `{"answers":{"Which?":"`+label+`"}}`)
			return s.call(t, http.MethodPost, "/v1/"+session+"/questions:answer", body)
		}
		if r := answer(b, "B"); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		b.waitFor(t, w.Turn)
		for _, s := range []*system{a, b} {
			if r := answer(s, "B"); r.code != http.StatusOK {
				t.Errorf("the same answer again: %d %s", r.code, r.body)
			}
			if r := answer(s, "A"); r.code != http.StatusBadRequest || !strings.Contains(r.body, "CALL_ANSWERED") {
				t.Errorf("another answer: %d %s", r.code, r.body)
			}
		}
		a.once(t, session, "question.requested", "question.resolved", "OK")
		if got := last(t, b.whole(t, session), "COMPLETE").field("turnFinished", "finalText"); !strings.Contains(got, "Which? B") {
			t.Errorf("the model reads %q", got)
		}
	}
}

// callMCP calls a command over MCP, under a key by which a repeated request attaches to the call.
func (s *system) callMCP(ctx context.Context, session, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Bash","arguments":{"command":%q},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, command)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.http+"/mcp/"+session, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "Bash", "Idempotency-Key": session,
	} {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// waitMCP repeats a call over MCP on the other server. The first request breaks off with its server.
func waitMCP(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session := a.session(t, "waiter")
	broken := make(chan string, 1)
	go func(s *system) {
		text, _ := s.callMCP(t.Context(), session, append1)
		broken <- text
	}(a)
	w := a.waitsSoon(t, session)
	return func(t *testing.T, a, b *system) {
		if text := <-broken; strings.Contains(text, `"result"`) {
			t.Fatalf("before the answer the call came to %s", text)
		}
		type answer struct {
			text string
			err  error
		}
		answers := make(chan answer, 2)
		for _, s := range []*system{a, b} {
			go func() {
				text, err := s.callMCP(t.Context(), session, append1)
				answers <- answer{text, err}
			}()
		}
		if r := b.resolve(t, session, w.approval(true, `,"updatedArgumentsJson":"{\"command\":\"echo over MCP | tee -a runs\"}"`)); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		for range 2 {
			if got := <-answers; got.err != nil || !strings.Contains(got.text, "over MCP") {
				t.Errorf("the repeated call came to %s, %v", got.text, got.err)
			}
		}
		a.refuses(t, session, w.approval(false, ""), "allowed with other arguments")
		a.once(t, session, "approval.requested", "approval.resolved", "OK")
		if got := a.runs(t, session); got != "over MCP\n" {
			t.Errorf("the command left %q", got)
		}
	}
}

// waitCommandLine leaves `fairlead call` running while the server is killed and comes back at the same address.
func waitCommandLine(t *testing.T, a *system) func(t *testing.T, a, b *system) {
	session := a.session(t, "waiter")
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "fairlead"), "call", session, "Bash", `{"command":"echo ran | tee -a runs"}`, "--server", a.grpc)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), "HOME="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w := a.waitsSoon(t, session)
	return func(t *testing.T, a, b *system) {
		if r := b.resolve(t, session, w.approval(true, "")); r.code != http.StatusOK {
			t.Fatalf("the answer: %d %s", r.code, r.body)
		}
		if err := <-ended; err != nil || strings.TrimSpace(out.String()) != "ran" {
			t.Errorf("the command line printed %q, %v: %s", out.String(), err, errs.String())
		}
		a.refuses(t, session, w.approval(false, ""), `"approved":"true"`)
		a.once(t, session, "approval.requested", "approval.resolved", "OK")
		if got := a.runs(t, session); got != "ran\n" {
			t.Errorf("the command left %q", got)
		}
	}
}
