package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheSkillOfTheDocumentsIsAddedAndRemoved runs the commands of docs/skills.md on its SKILL.md.
func TestTheSkillOfTheDocumentsIsAddedAndRemoved(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "skills.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "```\n---\nname: pdf-forms\n")
	manifest, _, whole := strings.Cut("---\nname: pdf-forms\n"+text, "```")
	if !ok || !whole {
		t.Fatal("docs/skills.md has no SKILL.md")
	}
	data := dataOf(t)
	dir := filepath.Join(data, "pdf-forms")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(manifest), 0o600)); err != nil {
		t.Fatal(err)
	}
	address := serverOf(t, filepath.Join(data, "server"))
	command := func(args ...string) (string, int) {
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		return out + errs, code
	}
	ran := 0
	lines := strings.Split(string(page), "\n")
	for i, line := range lines {
		given, ok := strings.CutPrefix(line, "$ bin/fairlead skills ")
		if !ok {
			continue
		}
		given, _, _ = strings.Cut(given, " #")
		args := strings.Fields(strings.ReplaceAll(given, "./pdf-forms", dir))
		out, code := command(append([]string{"skills"}, args...)...)
		if want := strings.TrimSpace(lines[i+1]); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%s: exit code %d: %s, want %s", line, code, out, want)
		}
		ran++
	}
	if ran < 4 {
		t.Errorf("docs/skills.md has %d commands about skills", ran)
	}
	if out, code := command("skills", "versions", "pdf-forms"); code == 0 || !strings.Contains(out, "There is no skill") {
		t.Errorf("after its deletion: exit code %d: %s", code, out)
	}
	if out, code := command("skills", "add", data); code == 0 || !strings.Contains(out, "it has no SKILL.md") {
		t.Errorf("a folder that is no skill: exit code %d: %s", code, out)
	}
	if out, code := command("skills", "add", filepath.Join(data, "nodir")); code != 2 || !strings.Contains(out, "there is no folder "+data) {
		t.Errorf("a folder that is not there: exit code %d: %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("no front matter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := command("skills", "add", dir); code == 0 || !strings.Contains(out, "does not begin with front matter") {
		t.Errorf("a faulty skill: exit code %d: %s", code, out)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if out, code := command("skills", "add", dir); code == 0 || !strings.Contains(out, "is a link") {
		t.Errorf("a link: exit code %d: %s", code, out)
	}
}
