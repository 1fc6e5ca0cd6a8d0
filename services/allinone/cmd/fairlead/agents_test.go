package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAgentIsMadeFromAFileChangedAndBroughtBack(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	file := func(prompt string) string {
		name := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(name, []byte("prompt: "+prompt+"\nprofile: full\ntools: [Read]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	has := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	}
	has(run(0, "agents", "create", "fixer", "-f", file("One.")), "version      1", "tools        Read")
	has(run(0, "agents", "update", "fixer", "-f", file("Two.")), "version      2")
	has(run(1, "agents", "update", "fixer", "-f", file("Three."), "--expected", "1"), "The newest version of agents/fixer is 2, not 1")
	has(run(0, "agents", "rollback", "fixer", "1"), "version      3")
	has(run(0, "agents", "versions", "fixer"), "as version 1")
	has(run(0, "agents", "versions", "fixer", "--json"), `"prompt":"Two."`)
	has(run(0, "agents", "list"), "fixer", "configuration", "coder")
	has(run(0, "run", "--agent", "fixer", "hello"), "")
	has(run(0, "agents", "archive", "fixer"), "archived")
	has(run(1, "run", "--agent", "fixer", "hello"), "agents/fixer is archived")
	has(run(1, "agents", "update", "coder", "-f", file("Mine.")), "the API does not change")
	has(run(0, "agents", "get", "fixer", "--json"), `"archiveTime"`)
}
