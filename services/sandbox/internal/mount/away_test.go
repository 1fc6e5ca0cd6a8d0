package mount

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// TestAMountWithoutItsFolderStopsOnlyWhatRequiresIt starts with a source that is missing, makes it and removes it.
func TestAMountWithoutItsFolderStopsOnlyWhatRequiresIt(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source, other := filepath.Join(dir, "books"), filepath.Join(dir, "tools")
	covers := filepath.Join(dir, "covers")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{
		Rules:  []Rule{{Name: "books", Source: source, Alias: "books"}, {Name: "drafts", Source: source + "2", Alias: "drafts", OnRequest: true}, {Name: "tools", Source: other, Alias: "tools"}},
		Covers: covers, Owners: box.Owners{Base: -1},
	})
	if err != nil {
		t.Fatalf("it does not start: %v", err)
	}
	names := func(asked ...box.Ask) (names []string) {
		t.Helper()
		all, err := s.For("acme", "ann", asked)
		if err != nil {
			t.Errorf("for %v: %v", asked, err)
		}
		for _, m := range all {
			if !m.Cover && m.Name != WorkflowsFolder {
				names = append(names, m.Name)
			}
		}
		return names
	}
	refused := func(name string) {
		t.Helper()
		_, err := s.For("acme", "ann", []box.Ask{{Name: name}})
		if !errors.Is(err, box.ErrNoMount) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "missing") || strings.Contains(err.Error(), dir) {
			t.Errorf("a session that requires %s: %v", name, err)
		}
	}
	without := func() {
		t.Helper()
		for _, asked := range [][]box.Ask{nil, {{Name: "books", Optional: true}}, {{Name: "drafts", Optional: true}}, {{Name: "tools"}}} {
			if got := names(asked...); !slices.Equal(got, []string{"tools"}) {
				t.Errorf("for %v there is %v", asked, got)
			}
		}
		refused("books")
		refused("drafts")
		if got := s.Skipped("acme", "ann"); !slices.Equal(got, []string{"books"}) {
			t.Errorf("skipped is %v", got)
		}
		if got := s.Gone(); !slices.Equal(got, []string{"books", "drafts"}) {
			t.Errorf("gone is %v", got)
		}
	}
	without()
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := names(box.Ask{Name: "books"}); !slices.Equal(got, []string{"books", "tools"}) || len(s.Skipped("acme", "ann")) > 0 {
		t.Errorf("once it is there: %v", got)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	without()
	if err := os.WriteFile(source, nil, 0o600); err != nil { // no folder any more
		t.Fatal(err)
	}
	without()
	if _, err := New(Options{Rules: []Rule{{Name: "file", Source: source, Alias: "f"}}, Covers: covers, Owners: box.Owners{Base: -1}}); err == nil {
		t.Error("a source that is no folder is accepted at the start")
	}
}
