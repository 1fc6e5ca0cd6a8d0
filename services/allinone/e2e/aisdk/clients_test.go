package aisdk

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// Where the official clients are installed.
const (
	modules = "../../../../deploy/tools/aisdk/node_modules"
	install = "make deploy/tools/aisdk/node_modules/.stamp"
)

// program writes a program where it finds the modules.
func program(t *testing.T, name string, text []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(wiretest.Have(t, modules, install), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// node runs a program and returns what it prints. At the line KILL it kills the server and starts it again.
func (s *server) node(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), wiretest.Have(t, modules+"/node/bin/node", install), arguments...)
	cmd.Env = append(os.Environ(), "SERVER="+s.URL)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "KILL" {
			s.Kill()
			s.Start(t)
			_, _ = in.Write([]byte("\n"))
			continue
		}
		all.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, all.String(), errs.String())
	}
	return all.String()
}

// each is what every client has.
const each = `plain: ready 2 text:done You said: hello
metadata: complete true true
follow-up: ready 4 reasoning:done Let me see. | text:done Done thinking.
anew: ready 2 true
edited: ready 2 text:done You said: something else
kept: 2 true
tool: ready 2 text:done I look. | dynamic-tool Bash output-available "9007199254740993" | text:done It says 9007199254740993
data: data-checkpoint data-status data-tool-output data-usage data-workspace
fail: error 1 no key (HTTP 401)
refused: error There is no agent "none". List the agents (GET /v1/agents) to see which there are.
client tool: ready 2 dynamic-tool where output-available "Berlin" | text:done You are in Berlin
question: ready true
approval-true: ready 2 text:done I write it. | dynamic-tool Write output-available "File created successfully at: /workspace/note.txt" | text:done Written, or not.
approval-false: ready 2 text:done I write it. | dynamic-tool Write output-denied null | text:done Written, or not.
reload: ready 2 text:done one two three four five six seven eight nine ten
nothing runs: ready 2 text:done one two three four five six seven eight nine ten
after a reload: ready 4 text:done You said: hello
stop: true ready interrupted
killed: error 1
back: ready 2 text:done one two three four five six seven eight nine ten
`

func TestTheOfficialClients(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts six versions of the official client")
	for _, c := range []struct{ pkg, major string }{
		{"ai", "7"}, {"ai-7-strict", "7"}, {"ai-6", "6"}, {"ai-6-strict", "6"}, {"ai-5", "5"}, {"ai-5-strict", "5"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			s := spawn(t)
			got := s.node(t, program(t, "chat.mjs", read(t, "testdata/chat.mjs")), c.pkg, c.major)
			want := each
			if c.major == "5" { // it knows no approvals
				want = strings.Replace(each, "output-denied null", `output-error "A person refused this call. It was not made."`, 1)
			}
			if got != want {
				t.Errorf("it prints\n%s", got)
			}
		})
	}
}

func TestUseChatInAPage(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it starts the official client in a page")
	page := regexp.MustCompile("(?s)```js\n(import \\{ useChat.*?)```").FindSubmatch(read(t, "../../../../docs/wires.md"))
	if page == nil {
		t.Fatal("the page of the wires has no example with useChat")
	}
	s := spawn(t)
	example := strings.ReplaceAll(string(page[1]), "http://127.0.0.1:8080", s.URL)
	example = strings.ReplaceAll(example, `agent: "coder"`, `agent: "asker"`)
	got := s.node(t, program(t, "page.mjs", append([]byte(example), read(t, "testdata/page.mjs")...)))
	const want = `asked: approval-requested
approved: output-available Written, or not.
in the middle: streaming
loaded again: one two three four five six seven eight nine ten
messages: user assistant user assistant
`
	if got != want {
		t.Errorf("it prints\n%s", got)
	}
}
