package agui

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

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// modules is where the official clients are installed.
const modules = "../../../../deploy/tools/agui/node_modules"

// installed returns the folder of a program with the official clients beside it.
func installed(t *testing.T) string {
	t.Helper()
	abs, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(abs, ".stamp")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the clients are missing: make deploy/tools/agui/node_modules/.stamp")
		}
		t.Skip("the clients are missing: make deploy/tools/agui/node_modules/.stamp")
	}
	dir := t.TempDir()
	if err := os.Symlink(abs, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheOfficialClients(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the clients are installed with npm")
	text, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"@ag-ui/client", "@ag-ui/client-0"} {
		t.Run(module, func(t *testing.T) {
			s := serve(t)
			file := filepath.Join(installed(t), "client.mjs")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", file)
			cmd.Env = append(os.Environ(), "SERVER=http://"+s.at, "MODULE="+module)
			held, errs := drive(t, cmd, func(line string, in io.Writer) {
				if line == "kill" {
					s.kill()
					s.start(t)
					_, _ = io.WriteString(in, "go on\n") // if the program has ended, it says why
				}
			})
			want := []string{
				"a plain turn", "a turn that follows", "a page that is loaded again", "a tool", "a failure", "an approval: approve", "an approval: deny",
				"a tool of the client", "a subagent that waits", "an interrupt", "a client that leaves", "kill", "a server that dies", "no warning",
			}
			if !slices.Equal(held, want) {
				t.Errorf("these held: %q\n%s", held, errs)
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

func TestTheExampleOfThePage(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the client is installed with npm")
	page, err := os.ReadFile("../../../../docs/wires.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## AG-UI\n")
	_, example, _ := strings.Cut(section, "```js\n")
	example, _, ok := strings.Cut(example, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	s := serve(t)
	file := filepath.Join(installed(t), "example.mjs")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(example, "127.0.0.1:8080", s.at)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", file).CombinedOutput()
	if err != nil || string(out) != "Hello there." {
		t.Errorf("the example prints %q: %v", out, err)
	}
}
