package proxy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// Where the official clients are installed, and the page for users.
const (
	modules = "../../../../deploy/tools/models/node_modules"
	python  = "../../../../bin/models/bin/python"
	page    = "../../../../docs/model-proxy.md"
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

// example returns the example of a language on the page, for this server.
func (s *server) example(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d examples in %s", len(found), language)
	}
	return strings.ReplaceAll(string(found[0][1]), "http://127.0.0.1:8080", s.url)
}

// program runs a program of a client and returns what it prints.
func (s *server) program(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Env = append(os.Environ(), "FAIRLEAD_KEY="+s.keys["ann"], "SERVER="+s.url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &errs)
	}
	return string(out)
}

// file writes a program where it finds the modules.
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

// busy refuses every other question about the stock exchange.
func busy(next modeltest.Script) modeltest.Script {
	refused := false
	return func(r modeltest.Request) modeltest.Step {
		if !strings.Contains(r.UserText, "stock") {
			return next(r)
		}
		if refused = !refused; refused {
			return modeltest.Step{Status: 429, ErrorType: "rate_limit_error", ErrorMessage: "slow down", Header: map[string]string{"retry-after": "0"}}
		}
		return next(r)
	}
}

// each is what both clients print for the loop of tools, with every wire.
const each = `streamed: Let me look. weather(Berlin) weather(Paris)
answered: It is 21 degrees in Paris.
usage: 45 12 5
whole: It is 21 degrees in Paris.
retried: Let me look.
not found: 404
refused: 400
models: true
`

func TestTheOfficialClients(t *testing.T) {
	prove.Only(t, "it starts the official clients of both vendors, in two languages")
	s := serve(t, "required", busy(weather), nil)
	for _, c := range []struct{ name, program, install, file string }{
		{"Python", python, "make bin/models/.stamp", "loop.py"},
		{"TypeScript", modules + "/node/bin/node", "make deploy/tools/models/node_modules/.stamp", "loop.mjs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := have(t, c.program, c.install)
			for _, m := range []struct{ wire, model string }{
				{"messages", "openai:gpt-5.6-terra"}, {"chat", "anthropic:claude-sonnet-5-5"}, {"responses", "anthropic:claude-sonnet-5-5"},
				{"responses", "openai:gpt-5.6-terra"},
			} {
				got := s.program(t, program, file(t, c.file, read(t, c.file)), m.wire, m.model)
				if got != each {
					t.Errorf("%s in front of %s: it prints\n%s", m.wire, m.model, got)
				}
			}
		})
	}
	if refused := append(s.anthropic.Refused(), s.openai.Refused()...); len(refused) > 0 {
		t.Error(refused)
	}
}

func TestTheExamplesOfThePage(t *testing.T) {
	prove.Only(t, "it starts the official clients of both vendors")
	const calls = "Let me look. weather Berlin\nweather Paris\n"
	s := serve(t, "required", weather, nil)
	t.Run("Python", func(t *testing.T) {
		program := have(t, python, "make bin/models/.stamp")
		want := calls + "Let me look. weather {\"city\":\"Berlin\"}\nweather {\"city\":\"Paris\"}\n"
		if got := s.program(t, program, file(t, "example.py", s.example(t, "python"))); got != want {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		program := have(t, modules+"/node/bin/node", "make deploy/tools/models/node_modules/.stamp")
		if got := s.program(t, program, file(t, "example.mjs", s.example(t, "js"))); got != calls+"Let me look. \n" {
			t.Errorf("it prints\n%s", got)
		}
	})
}
