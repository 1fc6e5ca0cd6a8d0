package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// newResolver returns a resolver of a folder with a file, a directory and links.
func newResolver(t *testing.T) *resolver {
	t.Helper()
	dir := t.TempDir()
	for name, err := range map[string]error{
		"a file":      os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600),
		"a directory": os.MkdirAll(filepath.Join(dir, "dir", "below"), 0o700),
		"a link":      os.Symlink("dir", filepath.Join(dir, "link")),
		"a way out":   os.Symlink("..", filepath.Join(dir, "out")),
	} {
		if err != nil {
			t.Fatalf("make %s: %v", name, err)
		}
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &resolver{root: root}
}

func TestNamesAreResolvedBeneathTheFolder(t *testing.T) {
	t.Parallel()
	r := newResolver(t)
	for name, want := range map[string]error{
		"file": nil, "dir/below": nil, "link/below": nil, "dir/../file": nil,
		"..": ErrEscapes, "out": ErrEscapes, "/etc": ErrEscapes, "missing": ErrNotFound, "file/below": ErrWrongType,
	} {
		f, err := r.open(name, unix.O_PATH)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	r.Rules = &Rules{NoLinks: true}
	if _, err := r.open("link/below", unix.O_PATH); !errors.Is(err, ErrChanged) {
		t.Errorf("a link under the rule against links: %v", err)
	}
}

func TestAResolverTellsTypesApart(t *testing.T) {
	t.Parallel()
	r := newResolver(t)
	if f, st, err := r.regular("file"); err != nil || st.Size != 4 {
		t.Errorf("a file: %d bytes, %v", st.Size, err)
	} else {
		_ = f.Close()
	}
	if _, _, err := r.regular("dir"); !errors.Is(err, ErrWrongType) {
		t.Errorf("a directory as a file: %v", err)
	}
	if _, err := r.directory("file"); !errors.Is(err, ErrWrongType) {
		t.Errorf("a file as a directory: %v", err)
	}
	if i, err := r.lookAt("link"); err != nil || i.Type != Symlink || i.Target != "dir" {
		t.Errorf("a link: %+v, %v", i, err)
	}
}

func TestProtectedFoldersAreNotChanged(t *testing.T) {
	t.Parallel()
	r := newResolver(t)
	if there, err := r.protect("dir/below"); err != nil || !there {
		t.Fatal(there, err)
	}
	if there, err := r.protect("missing"); err != nil || there {
		t.Error(there, err)
	}
	for name, want := range map[string]error{
		"file": nil, "new": nil, "dir": ErrMountPoint, "dir/below": ErrMountPoint, "dir/new": ErrMountPoint, "link/new": ErrMountPoint,
	} {
		f, _, err := r.parent(name)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
