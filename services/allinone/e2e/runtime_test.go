package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// claudeCode returns the folder of the Claude Code CLI.
func claudeCode(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../bin/claude-code")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "claude")); err != nil {
		t.Skipf("the Claude Code CLI is not installed: run `make claude-code` where npm can be reached (%v)", err)
	}
	if strings.HasPrefix(dir, "/tmp/") {
		return outsideTmp(t, dir)
	}
	return dir
}

// outsideTmp links the CLI from a checkout below /tmp, which sandboxes have for themselves.
func outsideTmp(t *testing.T, dir string) string {
	t.Helper()
	outside, err := os.MkdirTemp("/opt", "claude-code-") // t.TempDir is below /tmp
	if err != nil {
		t.Skipf("the checkout lies below /tmp, which sandboxes have for themselves: put it elsewhere (%v)", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	if err := os.Chmod(outside, 0o755); err != nil { // sandboxes of another user read it
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "claude"), filepath.Join(outside, "claude")); err != nil {
		t.Skipf("the checkout lies below /tmp, which sandboxes have for themselves: put it elsewhere (%v)", err)
	}
	return outside
}

// withRuntimes adds agents that differ in their runtime alone.
func withRuntimes(t *testing.T, o options) options {
	t.Helper()
	dir := claudeCode(t)
	o.scenario = filepath.Join("testdata", "runtimes.yaml")
	for _, runtime := range []string{"native", "claude-code"} {
		o.agents += fmt.Sprintf("  full-%[1]s: {runtime: %[1]s, profile: full, prompt: Be careful., tools: [Bash, Glob, Grep, LS, Read, Write]}\n"+
			"  asks-%[1]s: {runtime: %[1]s, profile: ask-writes, tools: [Bash, AskUserQuestion]}\n"+
			"  ends-%[1]s: {runtime: %[1]s, profile: full, verdict: tool}\n"+
			"  lead-%[1]s: {runtime: %[1]s, profile: full, tools: [Bash, Task], subagents: [{name: leaf, description: Works., prompt: Work., tools: [Bash]}]}\n"+
			"  reads-%[1]s: {runtime: %[1]s, profile: read-only, prompt: Read., tools: [Bash]}\n", runtime)
	}
	o.sandbox += fmt.Sprintf("read-only-paths: [%q]\n", dir)
	o.env = append(o.env, "FAIRLEAD_SESSION_RUNTIMES_CLAUDE_CODE_PROGRAM="+filepath.Join(dir, "claude"), "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
	return o
}

// a turnCase is a conversation that both runtimes must have in the same way.
type turnCase struct {
	agent string
	texts []string
	state string
	// see is called with each event; it may answer or interrupt.
	see func(t *testing.T, s *system, session string, f frame)
}

func turnCases() map[string]turnCase {
	answer := func(approved bool) func(*testing.T, *system, string, frame) {
		return func(t *testing.T, s *system, session string, f frame) {
			t.Helper()
			if f.event == "turn.waiting" { // an answer before it spares the turn the wait
				s.resolve(t, session, s.waitsSoon(t, session).approval(approved, `,"comment":"Because."`))
			}
		}
	}
	question := func(t *testing.T, s *system, session string, f frame) {
		t.Helper()
		if f.event == "turn.waiting" {
			w := s.waitsSoon(t, session)
			s.call(t, http.MethodPost, "/v1/"+session+"/questions:answer", fmt.Sprintf(`{"callId":%q,"questionId":%q,"action":"QUESTION_ACTION_ACCEPT","contentJson":%q}`,
				w.CallID, w.Question.ID, `{"answers":{"Which?":"B"}}`))
		}
	}
	steer := func(t *testing.T, s *system, session string, f frame) {
		t.Helper()
		if f.event == "tool_call.decision" {
			made(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"hurry","onActive":"ON_ACTIVE_STEER"}`))
			s.goOn(t, session)
		}
	}
	interrupt := func(at string) func(*testing.T, *system, string, frame) {
		return func(t *testing.T, s *system, session string, f frame) {
			t.Helper()
			if f.event == at {
				s.call(t, http.MethodPost, "/v1/"+session+":interrupt", `{}`)
			}
		}
	}
	return map[string]turnCase{
		"three turns":                  {"full", []string{"hello", "/compact @/etc/hostname", "and more"}, "COMPLETE", nil},
		"ten calls":                    {"full", []string{"ten", "after"}, "COMPLETE", nil},
		"a model that is overloaded":   {"full", []string{"retry", "after"}, "COMPLETE", nil},
		"a model that refuses the key": {"full", []string{"refused"}, "FAILED", nil},
		"an answer that is cut":        {"full", []string{"long"}, "PARTIAL", nil},
		"denied":                       {"reads", []string{"write"}, "COMPLETE", nil},
		"approved":                     {"asks", []string{"write"}, "COMPLETE", answer(true)},
		"refused by a person":          {"asks", []string{"write"}, "COMPLETE", answer(false)},
		"asked a question":             {"asks", []string{"ask", "after"}, "COMPLETE", question},
		"steered":                      {"full", []string{"slow", "after"}, "COMPLETE", steer},
		"a verdict":                    {"ends", []string{"finish"}, "PARTIAL", nil},
		"a subagent":                   {"lead", []string{"lead"}, "COMPLETE", nil},
		"interrupted in a call":        {"full", []string{"slow"}, "INTERRUPTED", interrupt("tool_call.decision")},
		"interrupted in an answer":     {"full", []string{"never"}, "INTERRUPTED", interrupt("step.started")},
	}
}

// TestBothRuntimesLogTheSame runs the same turns with each runtime and compares the logs.
func TestBothRuntimesLogTheSame(t *testing.T) {
	t.Parallel()
	eachShape(t, func(four, postgres bool) bool { return !four && !postgres || !testing.Short() }, func(t *testing.T, o options) {
		s := start(t, withRuntimes(t, o))
		for name, c := range turnCases() {
			t.Run(name, func(t *testing.T) {
				if !slices.Contains([]string{"three turns", "ten calls", "approved", "interrupted in a call"}, name) {
					prove.Only(t, "each case starts a CLI")
				}
				want, got := s.converse(t, "native", c), s.converse(t, "claude-code", c)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("the log of claude-code differs from that of native (-native +claude-code):\n%s", d)
				}
			})
		}
		s.tellsOfRuntimes(t)
		s.leavesNoCLI(t)
	})
}

// converse has a conversation and returns its log, without what differs from run to run.
func (s *system) converse(t *testing.T, runtime string, c turnCase) []string {
	t.Helper()
	session := s.session(t, c.agent+"-"+runtime)
	var log []string
	for i, text := range c.texts {
		frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", fmt.Sprintf(`{"text":%q}`, text), func(f frame) bool {
			if c.see != nil {
				c.see(t, s, session, f)
			}
			return true
		})
		state := "COMPLETE"
		if i == 0 {
			state = c.state
		}
		last(t, frames, state)
		log = append(log, plain(t, frames)...)
	}
	return log
}

// plain returns events without numbers, names, times and tokens.
func plain(t *testing.T, frames []frame) []string {
	t.Helper()
	var all []string
	var text strings.Builder
	for _, f := range frames {
		var e map[string]any
		if err := json.Unmarshal([]byte(f.data), &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(f.event, "delta"):
			if f.event == "text.delta" {
				text.WriteString(f.field("textDelta", "text"))
			}
			continue
		case strings.HasPrefix(f.event, "workspace"), strings.HasPrefix(f.event, "checkpoint"):
			continue // they are made beside the model's answer
		case f.event == "text.finished":
			e["text"] = text.String()
			text.Reset()
		}
		for _, k := range []string{"seq", "firstSeq", "time", "turn"} {
			delete(e, k)
		}
		b, err := json.Marshal(cleaned(e))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.event+" "+string(b))
	}
	for begin := 0; begin < len(all); begin++ { // calls that run together end in any order
		end := begin
		for end < len(all) && (strings.HasPrefix(all[end], "tool_call.decision ") || strings.HasPrefix(all[end], "tool_call.finished ")) {
			end++
		}
		slices.Sort(all[begin:end])
		begin = max(begin, end-1)
	}
	return all
}

// cleaned drops what two runs do not have in common.
func cleaned(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range []string{"usage", "sessionUsage", "message", "durationMs", "digest", "expireTime", "runtime", "voidFirstSeq", "voidLastSeq", "turn", "checkpoint", "name", "time", "resolver", "head", "session", "limits"} {
			delete(x, k)
		}
		for k, inner := range x {
			x[k] = cleaned(inner)
		}
	case []any:
		for i := range x {
			x[i] = cleaned(x[i])
		}
	case string:
		if head, rest, ok := strings.Cut(x, "."); ok && len(head) > 20 && !strings.Contains(head, " ") {
			return "TURN." + rest // a call's id
		}
	}
	return v
}

// tellsOfRuntimes checks what the capabilities say of runtimes.
func (s *system) tellsOfRuntimes(t *testing.T) {
	t.Helper()
	var answer struct {
		Runtimes []struct {
			Name, Unusable, Version string
			Agents                  []string
		}
	}
	r := s.call(t, http.MethodGet, "/v1/capabilities", "")
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || len(answer.Runtimes) != 2 {
		t.Fatalf("the capabilities are %s", r.body)
	}
	if c := answer.Runtimes[1]; c.Name != "claude-code" || c.Unusable != "" || !strings.HasPrefix(c.Version, "2.") || !slices.Contains(c.Agents, "agents/full-claude-code") {
		t.Errorf("the runtime is %+v", c)
	}
}

// processesWith returns the processes on this machine whose command line has a text.
func processesWith(text string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if line, err := os.ReadFile(f); err == nil && strings.Contains(string(line), text) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// leavesNoCLI checks that the CLIs end with the server.
func (s *system) leavesNoCLI(t *testing.T) {
	t.Helper()
	session := s.session(t, "full-claude-code")
	last(t, s.turn(t, session, "hello"), "COMPLETE")
	if n := len(processesWith(cliName(session))); n != 1 {
		t.Errorf("%d CLIs wait for the session's next turn", n)
	}
	s.stop(t)
	until(t, "no CLI is left", func() bool { return len(processesWith(cliName(session))) == 0 })
}

// cliName returns the CLI's own name of a session, as its command line has it.
func cliName(session string) string {
	h := sha256.Sum256([]byte(strings.TrimPrefix(session, "sessions/")))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// TestATurnOutlivesItsCLI kills the CLI while a call runs: the call is made once, and the turn goes on.
func TestATurnOutlivesItsCLI(t *testing.T) {
	t.Parallel()
	s := start(t, withRuntimes(t, options{}))
	session := s.session(t, "full-claude-code")
	frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"slow"}`, func(f frame) bool {
		if f.event == "tool_call.decision" {
			pids := processesWith(cliName(session))
			if len(pids) != 1 {
				t.Errorf("%d CLIs run", len(pids))
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			s.goOn(t, session)
		}
		return true
	})
	if got := last(t, frames, "COMPLETE").field("turnFinished", "finalText"); !strings.Contains(got, "gone") || s.runs(t, session) != "ran\n" {
		t.Errorf("the turn said %q, and the command ran: %q", got, s.runs(t, session))
	}
}

func (s *system) goOn(t *testing.T, session string) {
	t.Helper()
	if err := os.WriteFile(s.file(session, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestATurnOfTheCLIOutlivesItsServer kills the server while a call runs, and goes on with another one; then the session
// is forked and rewound there.
func TestATurnOfTheCLIOutlivesItsServer(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it kills servers")
	database := pgtest.New(t)
	o := withRuntimes(t, options{})
	o.database = database
	a := start(t, o)
	session := a.session(t, "full-claude-code")
	last(t, a.turn(t, session, "hello"), "COMPLETE")
	made(t, a.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"slow"}`))
	until(t, "the command runs", func() bool { return a.runs(t, session) == "ran\n" })
	a.kill()
	until(t, "its CLI has died with it", func() bool { return len(processesWith(cliName(session))) == 0 })
	a = a.restart(t)
	a.goOn(t, session)
	var end frame
	turns := 0
	for _, f := range a.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool {
		if f.event == "turn.finished" {
			turns++
		}
		return turns < 2
	}) {
		end = f
	}
	if a.runs(t, session) != "ran\n" || end.field("turnFinished", "state") == "TURN_STATE_FAILED" {
		t.Errorf("the command ran %q, and the turn ended %s", a.runs(t, session), end.data)
	}
	o = withRuntimes(t, options{})
	o.database = database
	b := start(t, o)
	if got := b.says(t, session, "again"); got != "You wrote: again" {
		t.Errorf("the other server says %q", got)
	}
	checkpoint := made(t, b.call(t, http.MethodPost, "/v1/"+session+"/checkpoints", `{}`))
	if r := b.call(t, http.MethodPost, "/v1/"+session+":compact", `{}`); r.code != http.StatusOK {
		t.Fatalf("compact: %d %s", r.code, r.body)
	}
	if got := b.says(t, session, "compacted"); got != "You wrote: compacted" {
		t.Errorf("after the compaction it says %q", got)
	}
	b.rewind(t, session, `{"checkpoint":"`+checkpoint+`"}`)
	if got := b.says(t, session, "rewound"); got != "You wrote: rewound" {
		t.Errorf("after the rewind it says %q", got)
	}
	fork := made(t, b.call(t, http.MethodPost, "/v1/"+session+":fork", `{}`))
	if got := a.says(t, fork, "forked"); got != "You wrote: forked" {
		t.Errorf("the fork says %q", got)
	}
}

// TestAnAgentWithoutItsRuntimeSaysWhatToDo has no CLI configured, and one that is not there.
func TestAnAgentWithoutItsRuntimeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"not configured": nil, "missing": {"FAIRLEAD_SESSION_RUNTIMES_CLAUDE_CODE_PROGRAM=/nonexistent/claude"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{agents: "  cli: {runtime: claude-code, profile: full}\n", env: env})
			end := last(t, s.turn(t, s.session(t, "cli"), "hello"), "FAILED")
			if got := end.field("turnFinished", "error"); !strings.Contains(got, "RUNTIME_UNAVAILABLE") || !strings.Contains(got, "session.runtimes.claude-code.program") {
				t.Errorf("the turn ended with %s", got)
			}
			if r := s.call(t, http.MethodGet, "/v1/capabilities", ""); !strings.Contains(r.body, `"unusable":"`) {
				t.Errorf("the capabilities are %s", r.body)
			}
		})
	}
}
