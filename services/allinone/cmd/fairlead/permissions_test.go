package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var explanation = regexp.MustCompile("(?ms)^```\n\\$ (fairlead permissions explain [^\n]*)\n(.*?)^```$")

// TestExamplesOfThePermissionsPage runs what docs/permissions.md and docs/command-rules.md explain, with the profile of the
// former.
func TestExamplesOfThePermissionsPage(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	text := docPages(t)["permissions.md"]
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("fairlead.yaml", yamlBlock.FindStringSubmatch(text)[1])
	filter := file("no-writes.yaml", "deny: [Write]\n")
	examples := explanation.FindAllStringSubmatch(text+docPages(t)["command-rules.md"], -1)
	if len(examples) < 5 {
		t.Fatalf("only %d examples were found", len(examples))
	}
	data := dataOf(t)
	address := serverOf(t, data, "--config", config)
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	spaces := regexp.MustCompile(` {2,}`)
	for _, e := range examples {
		out := run(0, words(strings.ReplaceAll(e[1], "no-writes.yaml", filter))[1:]...)
		if d := cmp.Diff(spaces.ReplaceAllString(e[2], " "), spaces.ReplaceAllString(out, " ")); d != "" {
			t.Errorf("%s (-page +came):\n%s", e[1], d)
		}
	}

	profile := file("mine.yaml", "allow: [Read, \"Bash(git *)\"]\nask: [\"Bash(git push *)\"]\n")
	has := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	}
	has(run(0, "profiles", "create", "mine", "-f", profile, "--description", "Mine."), "source", "api", "Bash(git push *)")
	has(run(0, "profiles", "list"), "full", "builtin", "careful", "configuration", "mine", "Mine.")
	has(run(0, "permissions", "explain", "Bash", "git push", "--profile", "mine"), "profile mine  ask: ask Bash(git push *)")
	has(run(0, "permissions", "explain", "Read", "a.txt"), "profile full  allow: allow Read")
	has(run(1, "profiles", "create", "careful", "-f", profile), "there is a permission profile of this name")
	has(run(1, "profiles", "update", "mine", "-f", profile, "--etag", "old"), "was changed since its etag was read")
	has(run(0, "profiles", "update", "mine", "-f", filter, "--json"), `"deny":["Write"]`)
	has(run(0, "profiles", "get", "mine"), "deny", "Write")
	has(run(0, "profiles", "delete", "mine"), "deleted mine")
	has(run(1, "profiles", "get", "mine"), "no such permission profile")
	has(run(0, "permissions", "grants"), "GRANT")
	has(run(1, "permissions", "revoke", "g1"), "there is no such grant", "grants/g1")
}
