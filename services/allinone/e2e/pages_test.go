package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// page is a page of docs/ whose examples a test runs as they are written there.
type page struct {
	text string
	left []string // command lines that have not run
}

var commandLine = regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*)$`)

func readPage(t *testing.T, name string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{text: string(text)}
	for _, m := range commandLine.FindAllStringSubmatch(p.text, -1) {
		p.left = append(p.left, m[1])
	}
	return p
}

// block returns the only example of a language that has a text.
func (p *page) block(t *testing.T, language, has string) string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllStringSubmatch(p.text, -1) {
		if strings.Contains(m[1], has) {
			found = append(found, m[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d examples in %q have %q", len(found), language, has)
	}
	return found[0]
}

// quoted returns the only text in backquotes that begins with another.
func (p *page) quoted(t *testing.T, begins string) string {
	t.Helper()
	found := regexp.MustCompile("`("+regexp.QuoteMeta(begins)+"[^`\n]*)`").FindAllStringSubmatch(p.text, -1)
	if len(found) != 1 {
		t.Fatalf("%d texts begin with %q", len(found), begins)
	}
	return found[0][1]
}

// next takes the first command line that begins with a text and has not run, without its comment.
func (p *page) next(t *testing.T, begins string) string {
	t.Helper()
	i := slices.IndexFunc(p.left, func(line string) bool { return strings.HasPrefix(line, begins) })
	if i < 0 {
		t.Fatalf("no further line of the page begins with %q", begins)
	}
	line := p.left[i]
	p.left = slices.Delete(p.left, i, i+1)
	line, _, _ = strings.Cut(line, " # ")
	return line
}

// done checks that each command line has run, but those that other tests run.
func (p *page) done(t *testing.T, elsewhere ...string) {
	t.Helper()
	for _, line := range p.left {
		if !slices.ContainsFunc(elsewhere, func(begins string) bool { return strings.HasPrefix(line, begins) }) {
			t.Errorf("this line of the page did not run: %s", line)
		}
	}
}

// section returns a part of an example in YAML, as YAML, after texts are replaced, each of which it has.
func section(t *testing.T, text string, path []string, replace ...string) string {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the example has no %q: %s", replace[i], text)
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		m, ok := v.(map[string]any)
		if v = m[key]; !ok || v == nil {
			t.Fatalf("the example has no %s: %s", key, text)
		}
	}
	part, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(part)
}

// shell runs command lines against a server.
type shell struct {
	server *system
	dir    string
}

func newShell(t *testing.T, s *system) *shell {
	t.Helper()
	return &shell{s, t.TempDir()}
}

// file writes a file that command lines name.
func (sh *shell) file(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(sh.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// command is a command line with texts replaced.
func (sh *shell) command(t *testing.T, line string, replace ...string) *exec.Cmd {
	t.Helper()
	replace = append(replace, "http://127.0.0.1:8080", "http://"+sh.server.http, "bin/fairlead", "fairlead")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer(replace...).Replace(line))
	cmd.Dir = sh.dir
	cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + sh.dir, "FAIRLEAD_SERVER=" + sh.server.grpc}
	return cmd
}

// run runs a command line and returns what it prints.
func (sh *shell) run(t *testing.T, line string, replace ...string) string {
	t.Helper()
	out, err := sh.command(t, line, replace...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// prints checks that a text has others.
func prints(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
