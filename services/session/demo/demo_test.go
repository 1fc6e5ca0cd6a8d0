package demo

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model/scripted"
)

// run runs the demonstration's test in dir.
func run(t *testing.T, dir string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "test.sh")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestScriptRepairsTheProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, Files()); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, dir); err == nil || !strings.Contains(out, "4 of 5 checks failed") {
		t.Fatalf("before: %v\n%s", err, out)
	}
	all, err := scripted.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	scenario := all[strings.TrimPrefix(Model, "scripted:")]
	for _, step := range scenario.Turns[0].Steps {
		for _, call := range step.Tools {
			if call.Name == "Edit" {
				edit(t, dir, call)
			}
		}
	}
	if out, err := run(t, dir); err != nil || !strings.Contains(out, "all 5 checks passed") {
		t.Fatalf("after: %v\n%s", err, out)
	}
}

// edit does what the tool Edit does.
func edit(t *testing.T, dir string, call scripted.ToolCall) {
	t.Helper()
	arguments, err := call.Arguments(func(text string) string { return text })
	if err != nil {
		t.Fatal(err)
	}
	var input map[string]string
	if err := json.Unmarshal([]byte(arguments), &input); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.Base(input["file_path"]))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := input["old_string"]
	if n := strings.Count(string(text), before); n != 1 {
		t.Fatalf("%q is %d times in %s", before, n, path)
	}
	repaired := strings.Replace(string(text), before, input["new_string"], 1)
	if err := os.WriteFile(path, []byte(repaired), 0o600); err != nil {
		t.Fatal(err)
	}
}
