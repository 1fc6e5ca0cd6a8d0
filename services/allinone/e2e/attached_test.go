package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// withAttached adds agents that differ in their runtime alone: native, and attached under a name.
func withAttached(o options, name string) options {
	o.scenario = filepath.Join("testdata", "runtimes.yaml")
	for agent, runtime := range map[string]string{"native": "native", "attached": "attached:" + name} {
		o.agents += fmt.Sprintf("  full-%[1]s: {runtime: %[2]q, profile: full, prompt: Be careful., tools: [Bash, Glob, Grep, LS, Read, Write]}\n"+
			"  asks-%[1]s: {runtime: %[2]q, profile: ask-writes, tools: [Bash, AskUserQuestion]}\n"+
			"  ends-%[1]s: {runtime: %[2]q, profile: full, verdict: tool}\n"+
			"  lead-%[1]s: {runtime: %[2]q, profile: full, tools: [Bash, Task], subagents: [{name: leaf, description: Works., prompt: Work., tools: [Bash]}]}\n"+
			"  reads-%[1]s: {runtime: %[2]q, profile: read-only, prompt: Read., tools: [Bash]}\n", agent, runtime)
	}
	o.env = append(o.env, "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
	return o
}

// attach attaches a process that asks the model for each step, until leave or the test's end.
func (s *system) attach(t *testing.T, name string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := sessionv1.NewRuntimeServiceClient(s.dial(t, s.grpc)).Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Open{Open: &sessionv1.AttachOpen{Runtime: name, MaxTurns: 100}}}); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.GetOpened() == nil {
		t.Fatalf("attached: %v, %v", r, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			if r.GetStep() != nil {
				_ = stream.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Ask{Ask: &sessionv1.RuntimeAsk{Step: r.GetStep().Id}}})
			}
			if r.GetAlive() != nil {
				_ = stream.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Alive{Alive: &sessionv1.AttachAlive{}}})
			}
		}
	}()
	ended := false
	leave = func() {
		if !ended {
			ended = true
			cancel()
			<-done
		}
	}
	t.Cleanup(leave)
	return leave
}

// logsTheSame runs the turns of all runtimes with an attached one, and compares the logs with those of native.
func (s *system) logsTheSame(t *testing.T) {
	t.Helper()
	for name, c := range turnCases() {
		t.Run(name, func(t *testing.T) {
			want, got := s.converse(t, "native", c), s.converse(t, "attached", c)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the log of the attached runtime differs from that of native (-native +attached):\n%s", d)
			}
		})
	}
}

// TestAnAttachedRuntimeLogsTheSame runs the turns of all runtimes with a process that attaches.
func TestAnAttachedRuntimeLogsTheSame(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, withAttached(o, "mine"))
		s.attach(t, "mine")
		s.logsTheSame(t)
	})
}

// TestATurnOfAFlagGivesItsPlaceBack has turns that a flag, not their agent, gives to an attached process.
func TestATurnOfAFlagGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	f := switches{filepath.Join(t.TempDir(), "flags.json")}
	f.write(t, `{"flags": {"runtime": {"state": "ENABLED", "variants": {"mine": "attached:mine"}, "defaultVariant": "mine"}}}`)
	o := withAttached(options{}, "mine")
	o.env = append(o.env, "FAIRLEAD_SESSION_FLAGS_FILE="+f.file)
	s := start(t, o)
	s.attach(t, "mine")
	session := s.session(t, "full-native")
	frames := s.turn(t, session, "hello")
	last(t, frames, "COMPLETE")
	if !slices.ContainsFunc(frames, func(f frame) bool { return f.field("turnStarted", "runtime") == "attached:mine" }) {
		t.Error("the flag did not count")
	}
	until(t, "the process has no turn", func() bool {
		var answer struct {
			Runtimes []struct {
				Name          string
				Places, Turns int
			}
		}
		r := s.call(t, http.MethodGet, "/v1/capabilities", "")
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.Runtimes {
			if r.Name == "attached:mine" {
				return r.Places == 100 && r.Turns == 0
			}
		}
		return false
	})
}

// TestAnAttachedProcessAtAnotherServer has two servers on a database. The process is attached to the second; the turn
// begins at the first. Then the process moves to the first one, while a call runs.
func TestAnAttachedProcessAtAnotherServer(t *testing.T) {
	t.Parallel()
	o := withAttached(options{database: pgtest.New(t)}, "mine")
	a, b := start(t, o), start(t, o)
	leave := b.attach(t, "mine")
	session := a.session(t, "full-attached")
	last(t, a.turn(t, session, "ten"), "COMPLETE")
	home := a // where the files are
	if _, err := os.Stat(a.file(session, "runs")); err != nil {
		home = b
	}
	frames := a.stream(t, "POST", "/v1/"+session+"/turns:stream", `{"text":"slow"}`, func(f frame) bool {
		if f.event == "tool_call.decision" {
			leave()
			a.attach(t, "mine")
			home.goOn(t, session)
		}
		return true
	})
	if end := last(t, frames, "COMPLETE"); !strings.Contains(end.field("turnFinished", "finalText"), "gone") || home.runs(t, session) != "ran\nran\n" {
		t.Errorf("the turn ended with %s, and the commands ran: %q", end.data, home.runs(t, session))
	}
}

// python runs a program of an attached runtime with the Python of a virtual environment.
func (s *system) python(t *testing.T, venv, program string) *exec.Cmd {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, "bin", venv, "bin/python")
	if _, err := os.Stat(filepath.Join(root, "bin", venv, ".stamp")); err != nil {
		t.Skipf("the Python packages are not installed: run `make bin/%s/.stamp` where the Python registry can be reached (%v)", venv, err)
	}
	cmd := exec.Command(python, program, s.grpc)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "gen/python")+":"+filepath.Join(root, "deploy/python"), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the process is attached", func() bool {
		return strings.Contains(s.call(t, http.MethodGet, "/v1/capabilities", "").body, `"places":16`)
	})
	return cmd
}

// kill ends a program at once.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestThePageRunsAnAttachedRuntime runs the program of docs/runtimes.md, and the turns of all runtimes with it.
func TestThePageRunsAnAttachedRuntime(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it needs the Python packages of `make generate`")
	page, err := os.ReadFile("../../../docs/runtimes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```python\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no program")
	}
	program := filepath.Join(t.TempDir(), "mine.py")
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, withAttached(options{}, "mine"))
	cmd := s.python(t, "venv", program)
	defer kill(cmd)
	s.logsTheSame(t)
}

// TestLangGraphDrivesTurns runs the turns of all runtimes with the example, kills it in the middle of a turn, and ends
// it as an operator does.
func TestLangGraphDrivesTurns(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it needs LangGraph")
	eachShape(t, func(four, postgres bool) bool { return four == postgres }, func(t *testing.T, o options) {
		s := start(t, withAttached(o, "graph"))
		first := s.python(t, "langgraph", "../../../deploy/python/examples/langgraph_runtime.py")
		s.logsTheSame(t)
		session := s.session(t, "full-attached")
		var second *exec.Cmd
		frames := s.stream(t, "POST", "/v1/"+session+"/turns:stream", `{"text":"slow"}`, func(f frame) bool {
			if f.event == "tool_call.decision" {
				kill(first)
				second = s.python(t, "langgraph", "../../../deploy/python/examples/langgraph_runtime.py")
				s.goOn(t, session)
			}
			return true
		})
		if end := last(t, frames, "COMPLETE"); s.runs(t, session) != "ran\n" {
			t.Errorf("the turn ended with %s, and the command ran: %q", end.data, s.runs(t, session))
		}
		_ = second.Process.Signal(syscall.SIGTERM)
		var exit *exec.ExitError
		if err := second.Wait(); errors.As(err, &exit) {
			t.Errorf("the process ended with %v", err)
		}
	})
}
