package mount

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFolderHasItsPlacesAndNothingElse(t *testing.T) {
	in := t.TempDir()
	defer unix.Umask(unix.Umask(0o077)) // the service's own is nothing to commands
	one, err := MakeCover(in, "ann", []string{"b/c", "a"})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = filepath.WalkDir(one, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(name)
		if err == nil && st.Mode() != os.ModeDir|coverMode {
			t.Errorf("%s is %v", name, st.Mode())
		}
		rel, bad := filepath.Rel(one, name)
		found = append(found, rel)
		if bad != nil {
			return bad
		}
		return err
	})
	if err != nil || !slices.Equal(found, []string{".", "a", "b", "b/c"}) {
		t.Errorf("it has %v, %v", found, err)
	}
	if again, err := MakeCover(in, "ann", []string{"a", "b/c"}); err != nil || again != one {
		t.Errorf("the same places are in %s, and not in %s: %v", again, one, err)
	}
	for _, x := range []struct {
		owner  string
		places []string
	}{{"bob", []string{"a", "b/c"}}, {"ann", []string{"a"}}, {"ann", nil}} {
		if other, err := MakeCover(in, x.owner, x.places); err != nil || other == one {
			t.Errorf("%v has the same, %v", x, err)
		}
	}
}
