package managed

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// machine is a machine on which the program `sandbox work` serves an environment.
type machine struct {
	program, data string
}

// process is a running worker.
type process struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	log  bytes.Buffer
	done chan struct{}
}

// Write keeps the log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// ended waits for the process and returns its exit code.
func (p *process) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(3 * time.Minute):
		t.Fatalf("the worker does not end:\n%s", p.logged())
		return 0
	}
}

func newMachine(t *testing.T, program string) *machine {
	return &machine{program, filepath.Join(t.TempDir(), "data")}
}

// work starts a worker with a key in its environment. It is killed with the test.
func (m *machine) work(t *testing.T, key string, args ...string) *process {
	t.Helper()
	args = append([]string{"work", "--level=basic", "--spare-sandboxes=0", "--data=" + m.data, "--max-idle=1h", "--lease=5s", "--limits.tmp=1048576", "--limits.shm=1048576"}, args...)
	p := &process{cmd: exec.Command(m.program, args...), done: make(chan struct{})}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "FAIRLEAD_ENVIRONMENT_KEY=" + key}
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }() // the exit code tells
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if key != "" && strings.Contains(p.logged(), key) {
			t.Error("the log has the environment's key")
		}
		if t.Failed() {
			t.Logf("the worker's log:\n%s", p.logged())
		}
	})
	return p
}

func (m *machine) serve(t *testing.T, h *hosted, args ...string) *process {
	t.Helper()
	return m.work(t, h.secret, append([]string{"--url=" + h.URL + "/anthropic", "--environment=" + h.environment}, args...)...)
}

// file returns the path of a file in the one workspace of the machine, once the file is there.
func (m *machine) file(t *testing.T, name string) string {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for t.Context().Err() == nil {
		found := ""
		_ = filepath.WalkDir(m.data, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == name {
				found = path
			}
			return nil
		})
		if found != "" {
			return found
		}
		<-look.C
	}
	t.Fatalf("there is no %s", name)
	return ""
}

// turnEnds reads events until the turn has ended, and returns all of them.
func turnEnds(t *testing.T, st *stream) (all []object) {
	t.Helper()
	for {
		all = append(all, st.until("session.status_idle")...)
		if last(t, all, "session.status_idle").text("stop_reason", "type") != "requires_action" {
			return all
		}
	}
}

func TestTheSandboxAsAWorker(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/fairlead/fairlead/services/sandbox/cmd/sandbox").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	s := serveUsers(t)
	t.Run("makes every call of the toolset", func(t *testing.T) { theWholeToolset(t, s, newMachine(t, program)) })
	t.Run("does not make a call again that a crash has ended", func(t *testing.T) { killedInMidCall(t, s, newMachine(t, program)) })
	t.Run("lets calls finish when it is stopped", func(t *testing.T) { stoppedInMidCall(t, s, newMachine(t, program)) })
	t.Run("ends calls that outlast its grace time", func(t *testing.T) { outOfGrace(t, s, newMachine(t, program)) })
	t.Run("ends a call that is interrupted", func(t *testing.T) { interruptedInMidCall(t, s, newMachine(t, program)) })
	t.Run("says what is wrong", func(t *testing.T) { wrongWorkers(t, s, newMachine(t, program)) })
}

func theWholeToolset(t *testing.T, s *server, m *machine) {
	h := beginHosted(t, s)
	m.serve(t, h)
	for range 2 { // the workspace stays for the next turn
		st := h.follow(t, h.session, "", h.api...)
		s.say(t, h.session, "every tool, please", h.api...)
		var got []string
		for _, e := range turnEnds(t, st) {
			if e.text("type") == "agent.message" {
				got = append(got, said(e))
			}
		}
		want := `bash: 0
one
again: Exit code 3
sub
kept
write: Wrote 19 bytes to /workspace/sub/a.txt.
edit: Edited /workspace/sub/a.txt: 1 replaced.
read: changed
third

glob: /workspace/sub/a.txt
grep: /workspace/sub/a.txt:2:changed
outside: The path /workspace/../../etc/passwd leads outside the workspace. Use a path below /workspace.
restart: The shell was restarted.
/workspace
gone`
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("the results are\n%s", text)
		}
	}
	before := h.session
	h.session = h.newSession(t) // at the same time: the worker stays with the first one
	st := h.follow(t, h.session, "", h.api...)
	s.say(t, h.session, "hosted, please", h.api...)
	if got := said(last(t, turnEnds(t, st), "agent.message")); got != "It says 9007199254740993" {
		t.Errorf("in a second session beside %s the agent says %q", before, got)
	}
}

func killedInMidCall(t *testing.T, s *server, m *machine) {
	h := beginHosted(t, s)
	worker := m.serve(t, h)
	st := h.follow(t, h.session, "", h.api...)
	s.say(t, h.session, "mid-call, please", h.api...)
	runs := m.file(t, "runs.txt")
	if err := worker.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	worker.ended(t)
	m.serve(t, h)
	events := turnEnds(t, st)
	if got := said(last(t, events, "agent.message")); !strings.HasPrefix(got, "It says The worker was lost while this call ran") {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	if got, err := os.ReadFile(runs); err != nil || string(got) != "run\n" {
		t.Errorf("the call has written %q, %v", got, err)
	}
	if got := kinds(events); strings.Count(got, "user.tool_result") != 1 {
		t.Errorf("the result came as %s", got)
	}
}

func stoppedInMidCall(t *testing.T, s *server, m *machine) {
	h := beginHosted(t, s)
	worker := m.serve(t, h, "--grace=10m")
	st := h.follow(t, h.session, "", h.api...)
	s.say(t, h.session, "mid-call, please", h.api...)
	runs := m.file(t, "runs.txt")
	if err := worker.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(runs), "go.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := said(last(t, turnEnds(t, st), "agent.message")); got != "It says finished" {
		t.Errorf("the agent says %q", got)
	}
	if code := worker.ended(t); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	if all := s.must(t, "GET", h.queue, "", h.key...).list(); len(all) != 0 && all[0].text("state") != "stopped" {
		t.Errorf("the work item is left as %v", all)
	}
}

func outOfGrace(t *testing.T, s *server, m *machine) {
	h := beginHosted(t, s)
	worker := m.serve(t, h, "--grace=100ms")
	st := h.follow(t, h.session, "", h.api...)
	s.say(t, h.session, "mid-call, please", h.api...)
	m.file(t, "runs.txt")
	if err := worker.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := said(last(t, turnEnds(t, st), "agent.message")); !strings.HasPrefix(got, "It says The worker was shut down, and ended the call.") {
		t.Errorf("the agent says %q", got)
	}
	if code := worker.ended(t); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

func interruptedInMidCall(t *testing.T, s *server, m *machine) {
	h := beginHosted(t, s)
	m.serve(t, h)
	st := h.follow(t, h.session, "", h.api...)
	s.say(t, h.session, "mid-call, please", h.api...)
	m.file(t, "runs.txt")
	s.must(t, "POST", "/sessions/"+h.session+"/events", `{"events":[{"type":"user.interrupt"}]}`, h.api...)
	turnEnds(t, st)
	s.say(t, h.session, "hosted, please", h.api...) // the worker has a free hand for the next call
	if got := said(last(t, turnEnds(t, st), "agent.message")); got != "It says 9007199254740993" {
		t.Errorf("the agent says %q", got)
	}
}

func wrongWorkers(t *testing.T, s *server, m *machine) {
	h, other := beginHosted(t, s), beginHosted(t, s)
	url, environment := "--url="+h.URL+"/anthropic", "--environment="+h.environment
	for _, c := range []struct {
		key  string
		args []string
		code int
		want string
	}{
		{"fl_wrong", []string{url, environment}, 1, "does not know the environment key"},
		{other.secret, []string{url, environment}, 1, "does not serve the environment " + h.environment},
		{s.Keys["ann"], []string{url, "--environment=env_none"}, 1, "check that the environment env_none exists"},
		{h.secret, []string{"--url=" + h.URL, environment}, 1, "it ends in /anthropic"},
		{"", []string{url, environment}, 2, "environment-key: is missing"},
		{h.secret, []string{"--url=localhost:8080", "--max-sessions=0"}, 2, "environment: must be the id"},
		{h.secret, []string{url, environment, "--environment-key-file=/nowhere"}, 2, "remove one of them"},
	} {
		p := m.work(t, c.key, c.args...)
		if code := p.ended(t); code != c.code || !strings.Contains(p.logged(), c.want) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, p.logged())
		}
	}
	p := m.work(t, h.secret, "--url=http://127.0.0.1:1/anthropic", environment)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !strings.Contains(p.logged(), "cannot reach the server at http://127.0.0.1:1/anthropic") {
		if t.Context().Err() != nil {
			t.Fatal("it does not say that the server is away")
		}
		<-look.C
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.ended(t); code != 0 {
		t.Errorf("stopped without a server it exits with %d", code)
	}
}
