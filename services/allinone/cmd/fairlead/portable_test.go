package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWholeSessions does with sessions what concerns a whole one, against a
// server in this process with a real sandbox.
func TestWholeSessions(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	run := func(t *testing.T, args ...string) string {
		t.Helper()
		got := embedded(t, append(args, "--server", address)...)
		if got.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, got.code, got.err)
		}
		return strings.TrimSpace(got.out)
	}
	run(t, "run", "tell me of the zebra")
	id := strings.Fields(strings.Split(run(t, "sessions", "list"), "\n")[1])[0]
	dir := t.TempDir()

	t.Run("an archive brings conversation and files", func(t *testing.T) {
		for name, text := range map[string]string{"a.txt": "stripes", "b.txt": strings.Repeat("black, white\n", 100_000)} {
			if err := os.WriteFile(filepath.Join(data, "sandbox", "default", id, "workspace", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "one.tar.gz")
		run(t, "sessions", "export", id, "--format=archive", "-o", file)
		if made := run(t, "sessions", "import", file, "--id=copy"); made != "copy" {
			t.Errorf("made was %q", made)
		}
		if got, want := turns(run(t, "sessions", "show", "copy")), turns(run(t, "sessions", "show", id)); got == "" || got != want {
			t.Errorf("the copy has\n%s\nwant\n%s", got, want)
		}
		if got, want := filesOf(t, data, "copy"), filesOf(t, data, id); !strings.Contains(got, "a.txt: stripes") || got != want {
			t.Errorf("the copy has %d bytes of files, want %d", len(got), len(want))
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	})
	t.Run("a transcript goes to standard output", func(t *testing.T) {
		out := run(t, "sessions", "export", id)
		if lines := strings.Split(out, "\n"); lines[0] != `{"type":"fairlead.session","version":1}` || !strings.HasPrefix(lines[len(lines)-1], `{"type":"end"`) {
			t.Errorf("the export is\n%s", out)
		}
		file := filepath.Join(dir, "cut.jsonl")
		if err := os.WriteFile(file, []byte(out[:len(out)/2]), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := embedded(t, "sessions", "import", file, "--server", address); got.code != exitError || !strings.Contains(got.err, "cut off") {
			t.Errorf("half of it: exit code %d, %s", got.code, got.err)
		}
	})
	t.Run("a fork goes on from a session", func(t *testing.T) {
		if made := run(t, "sessions", "fork", id, "--id=fork", "--title=Another way", "--json"); !strings.Contains(made, `"name":"sessions/fork"`) || !strings.Contains(made, "Another way") {
			t.Errorf("made was %s", made)
		}
	})
	t.Run("a session is compacted", func(t *testing.T) {
		if said := run(t, "sessions", "compact", id, "--instructions=stripes"); !strings.Contains(said, "session.compacted") {
			t.Errorf("it said %q", said)
		}
	})
	t.Run("messages are found", func(t *testing.T) {
		// The messages become findable beside the turns, soon after a server has begun.
		run(t, "run", "--session", id, "again")
		found := run(t, "sessions", "search", "zeb*", "--session", id)
		if lines := strings.Split(found, "\n"); len(lines) < 2 || !strings.HasPrefix(lines[0], "SESSION") || !strings.Contains(found, "tell me of the zebra") {
			t.Errorf("found was\n%s", found)
		}
		if found := run(t, "sessions", "search", "zeb*", "--json", "--limit=1"); strings.Count(found, "\n") != 0 || !strings.Contains(found, `"snippet":`) {
			t.Errorf("found was\n%s", found)
		}
	})
}

// turns is the table of turns that show prints.
func turns(shown string) string {
	_, table, _ := strings.Cut(shown, "\n\n")
	return table
}

// filesOf lists a workspace's files with what is in them.
func filesOf(t *testing.T, data, session string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		_, name, ok := strings.Cut(path, "/"+session+"/workspace/")
		if err != nil || !ok || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all.WriteString(name + ": " + string(b) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
