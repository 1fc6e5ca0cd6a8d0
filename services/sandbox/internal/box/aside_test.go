package box

import (
	"os"
	"path/filepath"
	"testing"
)

// coverMount is a cover that all users have, over a folder of the workspace.
type coverMount struct{ source string }

func (m coverMount) For(string, string, []Ask) ([]Mount, error) {
	return []Mount{{Name: "mnt", Source: m.source, Alias: "mnt", Cover: true}}, nil
}
func (coverMount) Environment(string, string) ([]string, error) { return nil, nil }
func (coverMount) Private(string) bool                          { return true }

// There was no cover when the files were made.
func TestWhatLiesWhereACoverIsToLieIsSetAsideWhenTheNodeStarts(t *testing.T) {
	o := options(t, &fake{})
	k := Key{"t", "s"}
	n := openNode(t, o)
	ensure(t, n, k)
	there := func(w *Workspace, name string) bool {
		_, err := os.Lstat(filepath.Join(w.Dir, name))
		return err == nil
	}
	for _, aside := range []string{"mnt.aside", "mnt.aside-2"} {
		w, release, err := n.View(k, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{os.MkdirAll(filepath.Join(w.Dir, "mnt"), 0o700), os.WriteFile(filepath.Join(w.Dir, "mnt", "f"), nil, 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Mounts("ann"); err != nil || !there(w, "mnt/f") {
			t.Errorf("a look at the mounts changes the workspace: %v", err)
		}
		release()
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		o.Mounts = coverMount{t.TempDir()}
		n = openNode(t, o)
		if w, release, err = n.View(k, 0); err != nil {
			t.Fatal(err)
		}
		if !there(w, aside+"/f") || there(w, "mnt/f") {
			t.Errorf("%s: it was not set aside", aside)
		}
		release()
	}
}

// What is about to be moved is read as it is.
func TestNothingIsSetAsideInASealedWorkspace(t *testing.T) {
	o := options(t, &fake{})
	cover := t.TempDir()
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	w, release, err := n.View(Key{"t", "s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, change := range []error{os.Mkdir(filepath.Join(w.Dir, "mnt"), 0o700), os.WriteFile(filepath.Join(w.Dir, "mnt", "f"), nil, 0o600), n.Seal(t.Context(), testCall("seal"))} {
		if change != nil {
			t.Fatal(change)
		}
	}
	n.o.Mounts = coverMount{cover}
	if all, err := w.Mounts("ann"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := os.RemoveAll(filepath.Join(w.Dir, "mnt")); err != nil {
		t.Fatal(err)
	}
	if all, err := w.Mounts("ann"); err != nil || len(all) != 1 {
		t.Errorf("without its place: %v, %v", all, err)
	}
	if left, err := os.ReadDir(w.Dir); err != nil || len(left) != 0 {
		t.Errorf("it has %v, %v", left, err)
	}
}
