package a2a

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

const root = "../../../../"

// need returns what a make target installs.
func need(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(root + path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(abs, ".stamp")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the client is missing: make %s/.stamp", path)
		}
		t.Skipf("the client is missing: make %s/.stamp", path)
	}
	return abs
}

// module writes a program with the official client beside it.
func module(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(need(t, "deploy/tools/a2a/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "client.mjs")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheOfficialClient(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the client is installed with npm")
	text, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{"JSONRPC", "HTTP+JSON"} {
		t.Run(transport, func(t *testing.T) {
			s := &server{wiretest.Spawn(t, configuration())}
			cmd := exec.CommandContext(t.Context(), "node", module(t, string(text)))
			cmd.Env = append(os.Environ(), "SERVER="+s.URL, "TRANSPORT="+transport)
			lines, errs := drive(t, cmd, func(line string, in io.Writer) {
				if line == "kill" {
					s.Kill()
					s.Start(t)
					_, _ = io.WriteString(in, "go on\n") // if the program has ended, it says why
				}
			})
			want := []string{
				"a plain task", "a task that follows", "a page that is loaded again", "a tool", "a failure", "an approval: approve", "an approval: deny", "a question",
				"an interrupt", "a client that leaves", "kill", "a server that dies",
			}
			if !slices.Equal(lines, want) {
				t.Errorf("these held: %q\n%s", lines, errs)
			}
		})
	}
}

func TestTheOfficialClientOfPython(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the client is installed with pip")
	for _, transport := range []string{"JSONRPC", "HTTP+JSON", "GRPC"} {
		t.Run(transport, func(t *testing.T) {
			s := serve(t)
			cmd := exec.CommandContext(t.Context(), filepath.Join(need(t, "bin/a2a"), "bin/python"), "testdata/client.py")
			cmd.Env = append(os.Environ(), "SERVER="+s.URL, "TRANSPORT="+transport, "GRPC_AT="+s.GRPC)
			lines, errs := drive(t, cmd, func(string, io.Writer) {})
			if want := []string{"a plain task", "a page that is loaded again", "a task that follows", "an error"}; !slices.Equal(lines, want) {
				t.Errorf("these held: %q\n%s", lines, errs)
			}
		})
	}
}

// drive runs a program and hands each line that it prints to see. It returns the lines.
func drive(t *testing.T, cmd *exec.Cmd, see func(line string, in io.Writer)) (lines []string, errs string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for all := bufio.NewScanner(out); all.Scan(); {
		lines = append(lines, all.Text())
		see(all.Text(), in)
	}
	if err := cmd.Wait(); err != nil {
		return lines, err.Error() + "\n" + stderr.String()
	}
	return lines, stderr.String()
}

// example returns an example of the page.
func example(t *testing.T, language string, s *server) string {
	t.Helper()
	page, err := os.ReadFile(root + "docs/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```"+language+"\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatalf("the page has no example in %s", language)
	}
	return strings.ReplaceAll(text, "http://127.0.0.1:8080", s.URL)
}

func TestTheExampleOfThePageByCurl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil && os.Getenv("CI") == "" {
		t.Skip("curl is missing; install it with: apt-get install curl")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", example(t, "sh", serve(t))).Output()
	if err != nil || !strings.Contains(string(out), `"text":"Hello there."`) || !strings.Contains(string(out), completed) {
		t.Errorf("the example prints %s: %v", out, err)
	}
}

func TestTheExampleOfThePage(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the client is installed with npm")
	out, err := exec.CommandContext(t.Context(), "node", module(t, example(t, "js", serve(t)))).CombinedOutput()
	if err != nil || string(out) != "Hello there." {
		t.Errorf("the example prints %q: %v", out, err)
	}
}
