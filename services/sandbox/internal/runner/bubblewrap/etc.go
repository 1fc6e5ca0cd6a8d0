package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// etcPath is its path in sandboxes.
const etcPath = "/etc"

// etc is the read-only /etc of all sandboxes, built once on the stage. If bubblewrap built it each time,
// that would be most of a sandbox's mounts.
type etc struct {
	stage *rootfs.Stage
	binds []rootfs.Bind

	mu    sync.Mutex // guards what follows
	at    string     // empty if not built yet
	older string     // the previous one, which a sandbox that is being made may still need
	files []inode    // the files that it shows, by bind
}

// inode identifies a file and its content.
type inode struct {
	device, number uint64
	size           int64
	written        unix.Timespec
}

// copied is the size up to which a file is copied instead of mounted: each mount takes memory and time in
// every sandbox.
const copied = 1 << 20

// part is a part of the machine's /etc: a copy of a file, or a mount.
type part struct {
	path    string // below /etc
	content []byte
	tree    int // a descriptor; -1 for a copy
}

// newETC takes the part of a layout below /etc.
func newETC(g *rootfs.Stage, l *rootfs.Layout) *etc {
	e := &etc{stage: g}
	for _, b := range append(append([]rootfs.Bind{}, l.Binds...), l.Extra...) {
		if below(b.Path) {
			e.binds = append(e.binds, b)
		}
	}
	return e
}

func below(path string) bool { return strings.HasPrefix(path, etcPath+"/") }

// path returns its path for bubblewrap. It rebuilds the folder if the machine's files have changed.
func (e *etc) path() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	files, copies := make([]inode, len(e.binds)), make([]bool, len(e.binds))
	for i, b := range e.binds {
		var st unix.Stat_t
		if err := unix.Stat(b.Source, &st); err != nil {
			return "", &os.PathError{Op: "show", Path: b.Source, Err: err}
		}
		files[i] = inode{uint64(st.Dev), st.Ino, 0, unix.Timespec{}} //nolint:unconvert // the type is the architecture's
		if copies[i] = st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size <= copied; copies[i] {
			files[i].size, files[i].written = st.Size, st.Mtim
		}
	}
	if e.at != "" && slices.Equal(files, e.files) {
		return e.at, nil
	}
	// The stage may hide the files, so they are opened here, not on its thread.
	var parts []part
	defer func() {
		for _, p := range parts {
			if p.tree >= 0 {
				_ = unix.Close(p.tree)
			}
		}
	}()
	for i, b := range e.binds {
		p := part{path: strings.TrimPrefix(b.Path, etcPath+"/"), tree: -1}
		var err error
		if copies[i] {
			p.content, err = os.ReadFile(b.Source)
		} else {
			p.tree, err = openReadOnly(b.Source)
		}
		if err != nil {
			return "", fmt.Errorf("put /etc together: %w", err)
		}
		parts = append(parts, p)
	}
	at := e.stage.Fresh("etc")
	err := e.stage.Do(func() error {
		if err := build(at, parts); err != nil {
			return errors.Join(fmt.Errorf("put /etc together: %w", err), takeDown(at))
		}
		return takeDown(e.older)
	})
	if err != nil {
		return "", err
	}
	e.older, e.at, e.files = e.at, at, files
	return at, nil
}

// build builds the folder, on the stage's thread.
func build(at string, parts []part) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("etc", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=32m"); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	for _, f := range rootfs.MadeFiles {
		name := at + strings.TrimPrefix(f.Path, etcPath)
		if err := errors.Join(os.WriteFile(name, []byte(f.Text), 0o444), os.Chmod(name, 0o444)); err != nil { //nolint:gosec // all may read it
			return err
		}
	}
	for _, p := range parts {
		if err := p.show(at); err != nil {
			return &os.PathError{Op: "show", Path: filepath.Join(etcPath, p.path), Err: err}
		}
	}
	return finish(at)
}

// finish replaces the mount by a read-only one. A process that the service starts meanwhile may still have
// a written file open until it executes its program. The kernel makes no mount read-only while a file is
// open for writing through it. So finish shows the folder through a new mount that was never writable.
func finish(at string) error {
	tree, err := openReadOnly(at)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
		return &os.PathError{Op: "unmount", Path: at, Err: err}
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	return nil
}

// openReadOnly opens a file or folder, with the mounts below it, as a read-only mount.
func openReadOnly(source string) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, &os.PathError{Op: "show", Path: source, Err: err}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return -1, errors.Join(&os.PathError{Op: "show read-only", Path: source, Err: err}, unix.Close(tree))
	}
	return tree, nil
}

// show shows the part below a folder.
func (p *part) show(dir string) error {
	at := dir
	names := strings.Split(p.path, "/")
	for _, name := range names[:len(names)-1] {
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // all pass through
			return err
		}
	}
	at = filepath.Join(dir, p.path)
	if p.tree < 0 {
		return errors.Join(os.WriteFile(at, p.content, 0o444), os.Chmod(at, 0o444)) //nolint:gosec // all may read it
	}
	var st unix.Stat_t
	if err := unix.Fstat(p.tree, &st); err != nil {
		return err
	}
	if err := rootfs.MakePoint(at, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	return unix.MoveMount(p.tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// takeDown undoes build, also if build failed.
func takeDown(at string) error {
	if at == "" {
		return nil
	}
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "unmount", Path: at, Err: err}
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
