package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where both names are of one file, rename(2) says that it has moved it and does nothing.
func TestAMoveOntoAnotherNameOfTheFileRemovesTheOldOne(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		left     bool
	}{
		"in one folder":                   {"old", "new", false},
		"in another folder":               {"old", "d/new", false},
		"a link itself":                   {"link", "d/link", false},
		"the same name":                   {"old", "old", true},
		"the same name, by another route": {"old", "here/old", true},
	} {
		for _, mounted := range []bool{false, true} {
			s, dir := withMount(t)
			prefix := "mnt/"
			if !mounted {
				tree, workspace := newTree(t, nil)
				var err error
				s, err = tree.With(nil)
				must(t, err)
				dir, prefix = workspace, ""
			}
			must(t, os.WriteFile(dir+"/old", []byte("text"), 0o644))
			must(t, os.Mkdir(dir+"/d", 0o755))
			must(t, os.Symlink(".", dir+"/here"))
			must(t, os.Symlink("old", dir+"/link"))
			must(t, os.Link(dir+"/old", dir+"/third"))
			if tc.from != tc.to && !tc.left {
				must(t, os.Link(filepath.Join(dir, tc.from), filepath.Join(dir, tc.to)))
			}
			was, err := s.Mark(prefix+tc.from, false)
			must(t, err)
			i, err := s.Move(prefix+tc.from, prefix+tc.to, true, func(RenameStep) error { return nil })
			if err != nil || i.Path != prefix+tc.to {
				t.Errorf("%s, in a mount %v: %+v, %v", name, mounted, i, err)
			}
			if is, err := s.Mark(prefix+tc.to, false); err != nil || is != was {
				t.Errorf("%s, in a mount %v: there is %+v, not %+v: %v", name, mounted, is, was, err)
			}
			if _, err := os.Lstat(filepath.Join(dir, tc.from)); (err == nil) != tc.left || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, in a mount %v: the old name: %v", name, mounted, err)
			}
			left, err := filepath.Glob(dir + "/.fairlead-*")
			if staged, bad := filepath.Glob(dir + "/../staging/*"); err != nil || bad != nil || len(left)+len(staged) > 0 {
				t.Errorf("%s, in a mount %v: left are %v and %v: %v", name, mounted, left, staged, err)
			}
		}
	}
}

// In a folder that does not tell upper from lower case two names may be one entry.
func TestAnEntryThatIsMovedOntoItselfStays(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"f": "text"})
	must(t, os.Link(dir+"/f", dir+"/other"))
	parent, name, err := tree.parent("f")
	must(t, err)
	defer func() { _ = parent.Close() }()
	at := place{int(parent.Fd()), name}
	must(t, tree.moveAgain(at, at))
	if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "text" {
		t.Errorf("there is %q: %v", text, err)
	}
}

// What others put in place of the new name, when it cannot be replaced, takes nothing away.
func TestAMoveThatFailsHalfwayLeavesTheOldName(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"f": "text", "d/x": ""})
	parent, name, err := tree.parent("f")
	must(t, err)
	defer func() { _ = parent.Close() }()
	if err := tree.moveAgain(place{int(parent.Fd()), name}, place{int(parent.Fd()), "d"}); err == nil {
		t.Error("a file has taken the place of a folder")
	}
	if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "text" {
		t.Errorf("there is %q: %v", text, err)
	}
}

// Others may take the old name and make a folder of the new one while the file is aside: it stays in
// the workspace.
func TestAFileThatCannotMoveStaysWhateverTookItsName(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"d/x": ""})
	parent, _, err := tree.parent("f")
	must(t, err)
	defer func() { _ = parent.Close() }()
	for range 200 {
		must(t, os.WriteFile(dir+"/f", []byte("text"), 0o644))
		stop, others := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(others)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if f, err := os.OpenFile(dir+"/f", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
					_ = f.Close()
					return
				}
			}
		}()
		if tree.moveAgain(place{int(parent.Fd()), "f"}, place{int(parent.Fd()), "d"}) == nil {
			t.Fatal("a file takes the place of a folder")
		}
		close(stop)
		<-others
		found := 0
		for _, pattern := range []string{"/f", "/moved-*"} {
			names, err := filepath.Glob(dir + pattern)
			must(t, err)
			for _, name := range names {
				text, err := os.ReadFile(name)
				must(t, err)
				found += strings.Count(string(text), "text")
				must(t, os.Remove(name))
			}
		}
		if found != 1 {
			t.Fatalf("%d files are left of it", found)
		}
	}
}
