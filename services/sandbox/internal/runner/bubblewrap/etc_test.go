package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
)

// A file of the machine is shown as it is when a sandbox is made, whether it was replaced since the
// last one was or written over, and so is a folder with all that is in it.
func TestSandboxesSeeFilesAsTheyAre(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a stage takes root")
	}
	thread := stage.NewThread(0)
	defer thread.Close()
	g, err := stage.New(thread)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	e := newETC(g, &rootfs.Layout{Binds: []rootfs.Bind{{Path: "/etc/deep/file", Source: file}, {Path: "/etc/folder", Source: folder}, {Path: "/usr", Source: "/usr"}}})
	see := func(name string) (text string) {
		at, err := e.path()
		if err != nil {
			t.Fatal(err)
		}
		_ = g.Do(func() error {
			raw, err := os.ReadFile(at + etcPart + "/" + name)
			text = string(raw)
			return err
		})
		return text
	}
	write(file, "one")
	if got := see("deep/file"); got != "one" {
		t.Errorf("at first: %q", got)
	}
	before, _ := e.path()
	if again, _ := e.path(); again != before {
		t.Error("it was made anew, and nothing had changed")
	}
	write(file, "two and more")
	if got := see("deep/file"); got != "two and more" {
		t.Errorf("written over: %q", got)
	}
	write(file+".new", "three")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, "late"), "late")
	if got := see("deep/file"); got != "three" {
		t.Errorf("replaced: %q", got)
	}
	if got := see("folder/late"); got != "late" {
		t.Errorf("in a folder: %q", got)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "below"), 0o755), os.Symlink("first", filepath.Join(folder, "link"))); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, "first"), "first")
	write(filepath.Join(folder, "below", "second"), "second")
	if got := see("folder/link"); got != "first" {
		t.Errorf("by a link: %q", got)
	}
	if err := errors.Join(os.Remove(filepath.Join(folder, "link")), os.Symlink("below/second", filepath.Join(folder, "link"))); err != nil {
		t.Fatal(err)
	}
	if got := see("folder/link"); got != "second" {
		t.Errorf("by a link that leads elsewhere now: %q", got)
	}
	write(filepath.Join(folder, "below", "second"), "changed")
	if got := see("folder/link"); got != "changed" {
		t.Errorf("written over, in a folder of a folder: %q", got)
	}
	write(filepath.Join(folder, "secret"), "secret")
	if err := os.Chmod(filepath.Join(folder, "secret"), 0o640); err != nil {
		t.Fatal(err)
	}
	if got := see("folder/secret"); got != "" {
		t.Errorf("what not everybody may read is copied: %q", got)
	}
	if got := see("passwd"); got != rootfs.MadeFiles[0].Text {
		t.Errorf("what is made up: %q", got)
	}
	at, _ := e.path()
	_ = g.Do(func() error {
		for _, name := range []string{etcPart + "/x", emptyPart + "/x", etcPart + "/deep/file"} {
			if err := os.WriteFile(at+name, nil, 0o600); err == nil {
				t.Errorf("%s can be written", name)
			}
		}
		return nil
	})
}

// What is too large to be copied is shown itself: so much the less is made anew for what changes in it.
func TestLargeFoldersAreShownThemselves(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a stage takes root")
	}
	thread := stage.NewThread(0)
	defer thread.Close()
	g, err := stage.New(thread)
	if err != nil {
		t.Fatal(err)
	}
	large, many, special := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(large, "file"), make([]byte, copiedBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range copiedNames + 1 {
		if err := os.Symlink("x", filepath.Join(many, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(special, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newETC(g, &rootfs.Layout{Binds: []rootfs.Bind{{Path: "/etc/large", Source: large}, {Path: "/etc/many", Source: many}, {Path: "/etc/special", Source: special}}})
	at, err := e.path()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{large, many, special} {
		if err := os.WriteFile(filepath.Join(source, "late"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := e.path(); again != at || err != nil {
		t.Errorf("made anew: %v", err)
	}
	_ = g.Do(func() error {
		for _, name := range []string{"large", "many", "special"} {
			if _, err := os.Stat(at + etcPart + "/" + name + "/late"); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
}

// A link among what is shown leads nobody out of it who puts it together.
func TestNoLinkLeadsOut(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	parts := []part{
		{path: "link", mode: fs.ModeSymlink, target: victim, tree: none},
		{path: "folder", mode: fs.ModeSymlink, target: outside, tree: none},
	}
	if err := showAll(inside, parts); err != nil {
		t.Fatal(err)
	}
	for _, p := range []part{
		{path: "link", mode: 0o644, content: []byte("taken"), tree: none}, {path: "folder/victim", mode: 0o644, content: []byte("taken"), tree: none},
		{path: "folder", mode: fs.ModeDir | 0o777, tree: none}, {path: "folder/new/file", mode: 0o644, tree: none},
	} {
		if err := showAll(inside, []part{p}); err == nil {
			t.Errorf("%s was shown", p.path)
		}
	}
	if raw, err := os.ReadFile(victim); err != nil || string(raw) != "mine" {
		t.Errorf("%q, %v", raw, err)
	}
	if all, err := os.ReadDir(outside); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
