// Package packages runs the client packages against a running server, each installed as people install it.
package packages

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

const (
	root  = "../../../../"
	tools = root + "deploy/tools/packages/node_modules/"
	built = root + "bin/packages/"
)

// server is all services.
type server struct{ *wiretest.Server }

// configuration is the configuration of the session service.
func configuration() map[string]any {
	return map[string]any{
		"model": "scripted:packages", "default-agent": "coder",
		"lease-ttl": "2s", // a killed server's turns go on as soon as it is back
		"agents": map[string]any{
			"helper": map[string]any{"prompt": "Help.", "profile": "full", "tools": []string{"Bash", "AskUserQuestion"}},
			"lead": map[string]any{
				"prompt": "Lead.", "profile": "ask-writes", "tools": []string{"Write", "Task"},
				"subagents": []any{map[string]any{"name": "leaf", "description": "writes", "prompt": "Write."}},
			},
			"coder": map[string]any{"prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Read", "Write"}},
		},
	}
}

// spawn runs a server that a test may kill.
func spawn(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Spawn(t, configuration())}
}

// guard runs a server with a user, whose key programs find in GUARDED_KEY, and returns the variables that name it.
func guard(t *testing.T) []string {
	t.Helper()
	s := wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER})
	return []string{"GUARDED=" + s.URL, "GUARDED_GRPC=" + s.GRPC, "GUARDED_KEY=" + s.Keys["ann"]}
}

// have returns the absolute path of what the packages' make targets made. Without it the test is skipped, but not in CI.
func have(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: make packages", pattern)
		}
		t.Skipf("%s is missing: make packages", pattern)
	}
	abs, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// page returns a program of the page of the clients: the block that begins with the line.
func page(t *testing.T, language, line string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, root+"docs/clients.md"), "```"+language+"\n"+line+"\n")
	if !ok {
		t.Fatalf("the page of the clients has no program in %s that begins with %s", language, line)
	}
	text, _, _ := strings.Cut(rest, "```")
	return line + "\n" + text
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// in runs a program in a folder, and returns what it prints.
func in(t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
	return string(out)
}

// run runs a program that calls the server, and returns what it prints. At the line KILL it kills the server and starts it again.
func (s *server) run(t *testing.T, dir string, env []string, arguments ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "FAIRLEAD_API_KEY=", "FAIRLEAD_BASE_URL="+s.URL, "FAIRLEAD_TARGET="+s.GRPC), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdinPipe()
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
			_, _ = answers.Write([]byte("\n"))
			continue
		}
		all.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, all.String(), errs.String())
	}
	return all.String()
}
