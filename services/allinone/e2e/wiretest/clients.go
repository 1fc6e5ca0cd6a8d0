package wiretest

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
)

// root is where the repository begins, from the folder of a test.
const root = "../../../../"

// vendors is where the official clients of Anthropic and OpenAI are installed.
const vendors = root + "deploy/tools/models/node_modules"

// Have returns the absolute path of a program, or skips the test where it is missing, but not in CI.
func Have(t *testing.T, path, install string) string {
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

// Python has the official clients of Anthropic and OpenAI.
func Python(t *testing.T) string {
	t.Helper()
	return Have(t, root+"bin/models/bin/python", "make bin/models/.stamp")
}

// Node runs what File writes as `.mjs`.
func Node(t *testing.T) string {
	t.Helper()
	return Have(t, vendors+"/node/bin/node", "make deploy/tools/models/node_modules/.stamp")
}

// File writes a program where it finds the official clients, and returns its path.
func File(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if strings.HasSuffix(name, ".mjs") {
		if err := os.Symlink(Have(t, vendors, "make deploy/tools/models/node_modules/.stamp"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { //nolint:gosec // the test names it
		t.Fatal(err)
	}
	return path
}

// Script is File with the text of the package's testdata.
func Script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return File(t, name, string(text))
}

// Example returns the only example of a language on a page, for a server. Where title is not empty, the example begins
// with it.
func Example(t *testing.T, page, language, title, url string) string {
	t.Helper()
	text, err := os.ReadFile(root + "docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	if title != "" {
		title += "\n"
	}
	found := regexp.MustCompile("(?s)```"+language+"\n("+regexp.QuoteMeta(title)+".*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page has %d examples in %s %s", len(found), language, title)
	}
	return strings.ReplaceAll(string(found[0][1]), "http://127.0.0.1:8080", url)
}

// Program runs a client of a server and returns what it prints.
func Program(t *testing.T, url, key, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...) //nolint:gosec // the test names it
	cmd.Env = append(os.Environ(), "FAIRLEAD_API_KEY="+key, "SERVER="+url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &errs)
	}
	return string(out)
}

// ComesBack runs a client that prints lines. It kills the server after the first one, and starts it again after
// the second one, which it tells the client.
func (s *Server) ComesBack(t *testing.T, program, script string, lines ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, script) //nolint:gosec // the same
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
	printed := bufio.NewScanner(out)
	for i, want := range lines {
		if !printed.Scan() || printed.Text() != want {
			t.Fatalf("it prints %q, want %q", printed.Text(), want)
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
