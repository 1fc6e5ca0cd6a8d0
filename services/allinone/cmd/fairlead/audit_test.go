package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheAuditLogIsExportedAndVerified(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	address := serverOf(t, dataOf(t))
	for _, args := range [][]string{{"users", "create", "ann"}, {"users", "create", "bob"}, {"users", "role", "bob", "viewer"}, {"users", "delete", "bob"}} {
		if got := embedded(t, append(args, "--server", address)...); got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	whole := embedded(t, "audit", "verify", "--server", address)
	anchor := regexp.MustCompile(`4:[0-9a-f]{64}`).FindString(whole.out)
	if whole.code != 0 || anchor == "" {
		t.Fatalf("%+v", whole)
	}
	export := embedded(t, "audit", "export", "--server", address)
	lines := strings.SplitAfter(strings.TrimSuffix(export.out, "\n"), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], `"resource":"users/bob"`) {
		t.Fatalf("%+v", export)
	}
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	verify := func(expect string, lines ...string) result {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return embedded(t, "audit", "verify", file, "--expect", expect)
	}
	if got := verify(anchor, lines...); got.code != 0 {
		t.Errorf("as it was exported: %+v", got)
	}
	swapped := slices.Clone(lines)
	swapped[1], swapped[2] = lines[2], lines[1]
	for name, got := range map[string]result{
		"changed":        verify(anchor, lines[0], strings.Replace(lines[1], "users/bob", "users/eve", 1), lines[2], lines[3]),
		"removed":        verify(anchor, lines[0], lines[2], lines[3]),
		"moved":          verify(anchor, swapped...),
		"the end is cut": verify(anchor, lines[:3]...),
		"another end":    verify("4:"+strings.Repeat("0", 64), lines...),
		"no entry":       verify(anchor, "{}\n", "hello"),
	} {
		if got.code != 1 || !strings.Contains(got.err, "not") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
