package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
)

// packed lists what is in a tar, with the modes.
func packed(t *testing.T, archive io.Reader) (names []string, modes map[string]int64) {
	t.Helper()
	modes = map[string]int64{}
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names, modes
		}
		must(t, err)
		names, modes[h.Name] = append(names, h.Name), h.Mode
	}
}

// Commands go on while files are packed: a folder that vanishes is left out, as a file is.
func TestWhatVanishesWhileItIsPackedIsLeftOut(t *testing.T) {
	for what, tc := range map[string]struct {
		name   string
		vanish func(place string) error
	}{
		"a folder":                         {"gone", os.RemoveAll},
		"a folder, for which a link comes": {"gone", func(place string) error { return errors.Join(os.RemoveAll(place), os.Symlink("/etc", place)) }},
		"a folder, for which a file comes": {"gone", func(place string) error { return errors.Join(os.RemoveAll(place), os.WriteFile(place, nil, 0o600)) }},
		"a file":                           {"gone/inner/file", os.RemoveAll},
		"a file, for which a link comes":   {"gone/inner/file", func(place string) error { return errors.Join(os.Remove(place), os.Symlink("/etc/passwd", place)) }},
		"a file, with its folders":         {"gone/inner/file", func(place string) error { return os.RemoveAll(filepath.Dir(filepath.Dir(place))) }},
	} {
		t.Run(what, func(t *testing.T) {
			tree, dir := newTree(t, map[string]string{"first": "", "gone/inner/file": "1", "last": "1"})
			var archive bytes.Buffer
			p := packer{out: tar.NewWriter(&archive)}
			w := p.walker(t.Context())
			visit := w.visit
			w.visit = func(at *os.File, last, name string, st *unix.Stat_t) error {
				if name == tc.name { // after it was looked at
					must(t, tc.vanish(filepath.Join(dir, name)))
				}
				return visit(at, last, name, st)
			}
			root, err := tree.directory(".")
			must(t, err)
			defer func() { _ = root.Close() }()
			must(t, errors.Join(w.walk(root, "", 0), p.out.Close()))
			names, _ := packed(t, &archive)
			if w.partial || !slices.Contains(names, "first") || !slices.Contains(names, "last") || slices.Contains(names, "gone/inner/file") {
				t.Errorf("in it is %q; more is left out: %v", names, w.partial)
			}
		})
	}
}

func TestAnExportThatCannotBeSaysWhereAndWhy(t *testing.T) {
	tree, dir := emptyTree(t)
	deep := strings.Repeat("d/", maxDepth) + "d"
	must(t, os.MkdirAll(filepath.Join(dir, deep), 0o755))
	err := tree.Pack(t.Context(), ".", Tar, io.Discard)
	if !errors.Is(err, ErrExport) || !strings.Contains(err.Error(), "d/d/d/") || !strings.Contains(err.Error(), "256 directories deep") {
		t.Errorf("of a deep folder: %.300v", err)
	}
	must(t, os.Remove(filepath.Join(dir, deep)))
	must(t, tree.Pack(t.Context(), ".", Tar, io.Discard))
}

// owned gives a folder to a user that permissions can stop; they cannot stop root.
func owned(t *testing.T, dir string) bind.IDs {
	t.Helper()
	if os.Getuid() != 0 {
		return bind.IDs{UID: -1, GID: -1}
	}
	who := bind.IDs{UID: 65534, GID: 65534}
	must(t, filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(name, who.UID, who.GID))
	}))
	return who
}

// What commands have closed to the service, which has their own user at level basic, is
// in an archive as it is, and closed afterwards as before.
func TestWhatIsClosedIsPacked(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o444, 0o111, 0o300, 0o700 | os.ModeSticky, os.ModeSticky | os.ModeSetgid} {
		t.Run(mode.String(), func(t *testing.T) {
			tree, dir := newTree(t, map[string]string{"closed/inner/file": "1", "closed/secret": "2", "open": "3"})
			who := owned(t, dir)
			for _, name := range []string{"closed/secret", "closed/inner", "closed"} {
				must(t, os.Chmod(filepath.Join(dir, name), mode))
			}
			t.Cleanup(func() {
				_ = os.Chmod(filepath.Join(dir, "closed"), 0o700)
				_ = os.Chmod(filepath.Join(dir, "closed/inner"), 0o700)
			})
			var was unix.Stat_t
			must(t, unix.Stat(filepath.Join(dir, "closed"), &was))
			var archive bytes.Buffer
			must(t, bind.As(who, func() error { return tree.Pack(context.Background(), ".", Tar, &archive) }))
			names, modes := packed(t, &archive)
			if want := []string{"closed/", "closed/inner/", "closed/inner/file", "closed/secret", "open"}; !slices.Equal(names, want) {
				t.Errorf("in it is %q, not %q", names, want)
			}
			if modes["closed/"] != int64(mode.Perm()) || modes["closed/secret"] != int64(mode.Perm()) {
				t.Errorf("with the modes %v", modes)
			}
			for _, name := range []string{"closed", "closed/inner", "closed/secret"} {
				var is unix.Stat_t
				must(t, unix.Stat(filepath.Join(dir, name), &is))
				if is.Mode&0o7777 != was.Mode&0o7777 {
					t.Errorf("%s has the mode %o, not %o", name, is.Mode&0o7777, was.Mode&0o7777)
				}
			}
		})
	}
}

func TestWhatCannotBeOpenedIsNamed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes another user's folder")
	}
	tree, dir := newTree(t, map[string]string{"a/closed/file": "1"})
	must(t, os.Chmod(filepath.Join(dir, "a/closed"), 0o700))
	err := bind.As(bind.IDs{UID: 65534, GID: 65534}, func() error { return tree.Pack(context.Background(), ".", Tar, io.Discard) })
	if !errors.Is(err, ErrExport) || !strings.Contains(err.Error(), "a/closed is closed to reading") || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("it says %v", err)
	}
}

// One export does not close what another one reads, nor take what that opened for the mode.
func TestWhatIsClosedIsPackedManyTimesAtOnce(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"closed/a": "1", "closed/b/c": "2", "closed/d": "3"})
	who := owned(t, dir)
	place := filepath.Join(dir, "closed")
	must(t, os.Chmod(place, 0))
	t.Cleanup(func() { _ = os.Chmod(place, 0o700) })
	archives := make([]bytes.Buffer, 100)
	var all errgroup.Group
	all.SetLimit(8)
	for i := range archives {
		all.Go(func() error {
			return bind.As(who, func() error { return tree.Pack(context.Background(), ".", Tar, &archives[i]) })
		})
	}
	must(t, all.Wait())
	for i := range archives {
		names, modes := packed(t, &archives[i])
		if len(names) != 5 || modes["closed/"] != 0 {
			t.Errorf("in one is %q, with the modes %v", names, modes)
		}
	}
	if is, err := os.Stat(place); err != nil || is.Mode().Perm() != 0 {
		t.Errorf("afterwards it is %v, %v", is.Mode(), err)
	}
}
