package managed

import (
	"bufio"
	"bytes"
	"io"
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
	page    = "../../../../docs/managed-agents.md"
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

// program runs a program of a client and returns what it prints.
func (s *server) program(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Env = append(os.Environ(), "FAIRLEAD_KEY="+s.Keys["ann"], "SERVER="+s.URL)
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
	inPython = `quickstart: It says 9007199254740993 end_turn ['bash'] idle
follow-up: You said: and then? end_turn
failure: retries_exhausted
paging: True True
outputs: ['number.txt'] b'9007199254740993\n'
allowed: It says 9007199254740993
denied: True
custom tool: The weather: 21 in Berlin
interrupt: word  You said: stop?
reconnect: ['one two three four five six seven eight nine ten']
file: The note: remember the milk 17
not found: 404
vaults: 404
versions: [2, 1] {'Key Ü': 'v'} True
archived: terminated 5 session_deleted
`
	inTypeScript = `quickstart: It says 9007199254740993 end_turn bash
follow-up: You said: and then? true
paging: true
allowed: It says 9007199254740993
custom tool: The weather: 21
not found: 404 true
`
)

func TestTheOfficialClients(t *testing.T) {
	prove.Only(t, "it starts the official clients in two languages")
	s := serveUsers(t)
	t.Run("Python", func(t *testing.T) {
		if got := s.program(t, have(t, python, "make bin/models/.stamp"), file(t, "loop.py", read(t, "loop.py"))); got != inPython {
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
	cmd := exec.CommandContext(t.Context(), have(t, python, "make bin/models/.stamp"), file(t, "killed.py", read(t, "killed.py")))
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

// example returns the program of the page with this title, for a server.
func example(t *testing.T, title, url string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```python\n(# "+title+"\n.*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d examples %s", len(found), title)
	}
	return strings.ReplaceAll(string(found[0][1]), "http://127.0.0.1:8080", url)
}

func TestTheExampleOfThePage(t *testing.T) {
	prove.Only(t, "it starts an official client")
	s := serveUsers(t)
	script := strings.ReplaceAll(example(t, "Claude Managed Agents", s.URL), "claude-sonnet-5-5", "scripted:agents")
	if got := s.program(t, have(t, python, "make bin/models/.stamp"), file(t, "example.py", script)); got != "You said: Write a haiku into haiku.txt.\n" {
		t.Errorf("it prints\n%s", got)
	}
}
