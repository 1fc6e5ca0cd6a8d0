package openaiagents

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// Where the official clients are installed, and the page for users.
const (
	modules = "../../../../deploy/tools/models/node_modules"
	python  = "../../../../bin/models/bin/python"
	page    = "../../../../docs/openai-agents.md"
)

// have returns the absolute path of a program, or skips the test where it is missing, but not in CI.
func have(t *testing.T, path, install string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: %s", path, install)
		}
		t.Skipf("%s is missing: %s", path, install)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func interpreter(t *testing.T) string { t.Helper(); return have(t, python, "make bin/models/.stamp") }

// careful makes the agent that asks a person, and returns its id.
func (s *server) careful(t *testing.T, header ...string) string {
	t.Helper()
	code, text := s.Call(t, "POST", "/v1/agents?agentId=careful", `{"model":"scripted:agents","profile":"full","tools":["Bash"],"permissions":{"ask":["Bash"]}}`, header...)
	if code != http.StatusOK {
		t.Fatal(text)
	}
	return "careful"
}

// program runs a program of a client and returns what it prints.
func (s *server) program(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Env = append(os.Environ(), "FAIRLEAD_KEY="+s.Keys["ann"], "SERVER="+s.URL, "CAREFUL=careful")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &errs)
	}
	return string(out)
}

// file copies a program to where it finds the modules.
func file(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if strings.HasSuffix(name, ".mjs") {
		if err := os.Symlink(have(t, modules, "make deploy/tools/models/node_modules/.stamp"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	inPython = `quickstart: It says 9007199254740993 completed
items: ['message', 'message', 'command_execution', 'message']
artifact: /workspace/artifacts/number.txt b'9007199254740993\n'
handler: The weather: 21 in Berlin
turns: ['completed', 'completed'] ['message', 'message', 'function_call', 'function_call_output', 'message']
streamed create: The weather: 21 in Berlin
asks: mcp_approval_request fairlead Bash
denied: failed None
failure: AgentTurnResultError failed authentication_error
update: {'Key Ü': 'v'} True
not found: 404 False
not found: 404 True
not found: 404 True
refused: environment.type
`
	inTypeScript = `quickstart: It says 9007199254740993 completed
items: message message command_execution message
artifact: /workspace/artifacts/number.txt "9007199254740993\n"
handler: The weather: 21 in Berlin | I ask you.The weather: 21 in Berlin
streamed create: The weather: 21 in Berlin completed
asks: mcp_approval_request fairlead Bash
approved: It says 9007199254740993
cancelled: cancelled
schema: {"n":3}
agents: Count true true
deleted: true true
not found: 404 true
automations: 404 true
`
)

func TestTheOfficialClients(t *testing.T) {
	prove.Only(t, "it starts the official clients in two languages")
	s := serveUsers(t)
	s.careful(t, "Authorization", "Bearer "+s.Keys["ann"])
	t.Run("Python", func(t *testing.T) {
		if got := s.program(t, interpreter(t), file(t, "loop.py", read(t, "loop.py"))); got != inPython {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		node := have(t, modules+"/node/bin/node", "make deploy/tools/models/node_modules/.stamp")
		if got := s.program(t, node, file(t, "loop.mjs", read(t, "loop.mjs"))); got != inTypeScript {
			t.Errorf("it prints\n%s", got)
		}
	})
}

func TestAnOfficialClientComesBackToAServerThatWasKilled(t *testing.T) {
	prove.Only(t, "it starts an official client")
	s := spawn(t)
	cmd := exec.CommandContext(t.Context(), interpreter(t), file(t, "killed.py", read(t, "killed.py")))
	cmd.Env = append(os.Environ(), "SERVER="+s.URL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i, want := range []string{"streaming", "cut off: True", "['slow', 'one two three four five six seven eight nine ten']"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it prints %q, want %q", lines.Text(), want)
		}
		switch i {
		case 0:
			s.Kill()
		case 1:
			s.Start(t)
			if _, err := io.WriteString(in, "back\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheExampleOfThePage(t *testing.T) {
	prove.Only(t, "it starts an official client")
	s := serveUsers(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```python\n(# OpenAI Agents\n.*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d examples", len(found))
	}
	example := strings.ReplaceAll(string(found[0][1]), "http://127.0.0.1:8080", s.URL)
	example = strings.ReplaceAll(example, "gpt-5.2", "scripted:agents")
	example = strings.ReplaceAll(example, "What is the weather in Berlin?", "client")
	if got := s.program(t, interpreter(t), file(t, "example.py", example)); got != "I ask you.The weather: 21 degrees in Berlin\nThe weather: 21 degrees in Berlin\n" {
		t.Errorf("it prints\n%s", got)
	}
}
