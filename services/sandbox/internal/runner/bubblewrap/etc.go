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
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
)

// etcPath is where sandboxes see it.
const etcPath = "/etc"

// etc is the /etc of all sandboxes, put together on the stage once, read-only: to have
// bubblewrap put it together each time is what took most of the mounts of a sandbox.
type etc struct {
	stage *stage.Stage
	binds []rootfs.Bind

	mu    sync.Mutex // guards what follows
	at    string     // empty: there is none
	older string     // the one before, which a sandbox that is being made may want yet
	files []inode    // that it shows, by bind
}

// inode tells files apart.
type inode struct{ device, number uint64 }

// newETC takes the part of a layout below /etc.
func newETC(g *stage.Stage, l *rootfs.Layout) *etc {
	e := &etc{stage: g}
	for _, b := range append(append([]rootfs.Bind{}, l.Binds...), l.Extra...) {
		if below(b.Path) {
			e.binds = append(e.binds, b)
		}
	}
	return e
}

func below(path string) bool { return strings.HasPrefix(path, etcPath+"/") }

// path is where bubblewrap finds it. It is made anew when the machine has other files
// than it shows: they are replaced, not written over.
func (e *etc) path() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	files := make([]inode, len(e.binds))
	for i, b := range e.binds {
		var st unix.Stat_t
		if err := unix.Stat(b.Source, &st); err != nil {
			return "", &os.PathError{Op: "show", Path: b.Source, Err: err}
		}
		files[i] = inode{uint64(st.Dev), st.Ino} //nolint:unconvert // the type is the architecture's
	}
	if e.at != "" && slices.Equal(files, e.files) {
		return e.at, nil
	}
	// The stage may hide where they are: they are opened here, not on its thread.
	var trees []int
	defer func() {
		for _, tree := range trees {
			_ = unix.Close(tree)
		}
	}()
	for _, b := range e.binds {
		tree, err := openReadOnly(b.Source)
		if err != nil {
			return "", fmt.Errorf("put /etc together: %w", err)
		}
		trees = append(trees, tree)
	}
	at := e.stage.Fresh("etc")
	err := e.stage.Do(func() error {
		if err := e.build(at, trees); err != nil {
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

// build puts it together of what was opened, on the stage's thread.
func (e *etc) build(at string, trees []int) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("etc", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	for _, f := range rootfs.MadeFiles {
		name := at + strings.TrimPrefix(f.Path, etcPath)
		if err := errors.Join(os.WriteFile(name, []byte(f.Text), 0o444), os.Chmod(name, 0o444)); err != nil { //nolint:gosec // all may read it
			return err
		}
	}
	for i, b := range e.binds {
		if err := show(trees[i], at, strings.TrimPrefix(b.Path, etcPath+"/")); err != nil {
			return &os.PathError{Op: "show", Path: b.Source, Err: err}
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, at, 0, &attr))
}

// openReadOnly opens a file or folder, with what is mounted below it, to be shown elsewhere.
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

// show shows what was opened under a name below a folder.
func show(tree int, dir, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	parts := strings.Split(name, "/")
	at := dir
	for _, part := range parts[:len(parts)-1] {
		at = filepath.Join(at, part)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // all pass through
			return err
		}
	}
	at = filepath.Join(dir, name)
	if err := stage.MakePoint(at, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// takeDown undoes build, also one that failed.
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
