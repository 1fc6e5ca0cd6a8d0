package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// needSandbox skips a test where commands cannot be isolated, except in CI.
func needSandbox(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && os.Getenv("CI") == "" {
		t.Skip("bwrap is missing; install it with: apt-get install bubblewrap")
	}
}

// dataOf is a data directory that the users of workspaces can pass through.
func dataOf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fairlead-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRunAndSessionsInThisProcess(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	first := embedded(t, "run", "--data", data, "hello")
	if first.code != 0 || !strings.Contains(first.out, "COMPLETE  2 steps") || !strings.Contains(first.err, "The model is a script") {
		t.Fatalf("exit code %d\n%s%s", first.code, first.out, first.err)
	}
	list := embedded(t, "sessions", "list", "--data", data, "--json")
	var session struct{ Name string }
	if err := json.Unmarshal([]byte(list.out), &session); err != nil {
		t.Fatalf("%v: %s%s", err, list.out, list.err)
	}
	id := strings.TrimPrefix(session.Name, "sessions/")
	again := embedded(t, "run", "--data", data, "--session", id, "and again")
	if again.code != 0 {
		t.Errorf("go on: exit code %d\n%s", again.code, again.err)
	}
	shown := embedded(t, "sessions", "show", id, "--data", data)
	if strings.Count(shown.out, "COMPLETE") != 2 {
		t.Errorf("show:\n%s%s", shown.out, shown.err)
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) == 0 {
		t.Errorf("nothing was kept: %v", err)
	}
}

func TestTheDemonstrationIsGreen(t *testing.T) {
	needSandbox(t)
	t.Setenv("FAIRLEAD_MODEL", "anthropic:not-used")
	t.Setenv("FAIRLEAD_DATABASE_URL", "postgres://not-used.invalid/x")
	got := embedded(t, "demo")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.out, got.err)
	}
	for _, want := range []string{"4 of 5 checks failed", "> Edit /workspace/stats.sh", "+ \twords=$((words + $#))", "all 5 checks passed", "The turn is COMPLETE and the test is green."} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not shown", want)
		}
	}
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// embedded runs a command without a server.
func embedded(t *testing.T, args ...string) result {
	t.Helper()
	out, errs, code := fairlead(t.Context(), "", nil, args...)
	return result{code, out, errs}
}
