package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Stage shows folders to a bubblewrap that runs as another user, which could not reach them by their own
// path, such as a data directory below /root. It is a small file system in a mount namespace that only its
// thread and the thread's children share. So the host's other processes never see it, and a crash leaves
// nothing behind.
type Stage struct {
	thread *Thread
	dir    string
	next   atomic.Int64 // numbers the shown folders
}

// hidden are folders that bubblewrap does not need and that may be hidden.
var hidden = []string{"/mnt", "/media", "/srv", "/tmp"}

// NewStage makes a stage. The thread enters the stage's mount namespace.
func NewStage(t *Thread) (*Stage, error) {
	for _, dir := range hidden {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			g := &Stage{thread: t, dir: dir}
			return g, t.Do(g.mount)
		}
	}
	return nil, fmt.Errorf("the folders %v do not exist: create one of them; it stays empty", hidden)
}

func (g *Stage) mount() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	// Later mounts of the host still come in; nothing goes out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := unix.Mount("stage", g.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size=4m"); err != nil {
		return fmt.Errorf("mount the stage: %w", err)
	}
	return nil
}

// Fresh returns an unused name on the stage.
func (g *Stage) Fresh(kind string) string {
	return filepath.Join(g.dir, fmt.Sprintf("%s.%d", kind, g.next.Add(1)))
}

// Do runs f on the thread that sees the stage.
func (g *Stage) Do(f func() error) error { return g.thread.Do(f) }

// show shows a host path under a free name and returns where.
func (g *Stage) show(path, name string) (string, error) {
	tree, err := Clone(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(tree) }()
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return "", err
	}
	return g.place(tree, name, st.Mode&unix.S_IFMT == unix.S_IFDIR)
}

// place attaches a mount to the stage under a name and returns where.
func (g *Stage) place(tree int, name string, directory bool) (string, error) {
	at := filepath.Join(g.dir, name)
	return at, g.thread.Do(func() error {
		if err := MakePoint(at, directory); err != nil {
			return err
		}
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return errors.Join(&os.PathError{Op: "show", Path: name, Err: err}, os.Remove(at))
		}
		return nil
	})
}

// MakePoint makes an empty folder or file as a mount point.
func MakePoint(at string, directory bool) error {
	if directory {
		return os.Mkdir(at, 0o755)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// ShowAll shows extra paths.
func (g *Stage) ShowAll(extra []Bind) error {
	for i := range extra {
		at, err := g.show(extra[i].Source, fmt.Sprintf("read-only.%d", i))
		if err != nil {
			return err
		}
		extra[i].Source = at
	}
	return nil
}

// Frame is a place on the stage for all mounts of one sandbox. It is unmounted as a whole, because each
// unmount waits for all processors.
type Frame struct {
	stage *Stage
	dir   string
}

// Piece is a mount for a frame.
type Piece struct {
	Name string
	Tree int // a descriptor
}

// Hang makes a frame with some mounts in it.
func (g *Stage) Hang(pieces []Piece) (*Frame, error) {
	f := &Frame{g, filepath.Join(g.dir, strconv.FormatInt(g.next.Add(1), 10))}
	return f, g.thread.Do(func() error {
		if err := os.Mkdir(f.dir, 0o711); err != nil {
			return err
		}
		if err := unix.Mount("frame", f.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size=64k"); err != nil {
			return errors.Join(&os.PathError{Op: "mount a frame", Path: f.dir, Err: err}, os.Remove(f.dir))
		}
		for _, p := range pieces {
			at := f.At(p.Name)
			err := os.Mkdir(at, 0o755)
			if err == nil {
				err = unix.MoveMount(p.Tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
			}
			if err != nil {
				return errors.Join(&os.PathError{Op: "show", Path: p.Name, Err: err}, f.remove())
			}
		}
		return nil
	})
}

// At returns the path of a piece for bubblewrap.
func (f *Frame) At(name string) string { return filepath.Join(f.dir, name) }

// Hide removes the frame from the stage. An earlier copy of the mount namespace keeps it.
func (f *Frame) Hide() error {
	return f.stage.thread.Do(func() error { return os.NewSyscallError("umount", unix.Unmount(f.dir, unix.MNT_DETACH)) })
}

// Clear removes a hidden frame's place. That removes the frame from all mount namespaces, except what these
// show elsewhere.
func (f *Frame) Clear() error { return f.stage.thread.Do(func() error { return os.Remove(f.dir) }) }

// Remove undoes Hang.
func (f *Frame) Remove() error { return f.stage.thread.Do(f.remove) }

// remove is Remove, on the thread.
func (f *Frame) remove() error {
	return errors.Join(unix.Unmount(f.dir, unix.MNT_DETACH), os.Remove(f.dir))
}

// Clone returns a mount of a folder of the host as a descriptor, which the caller owns.
func Clone(path string) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, &os.PathError{Op: "show", Path: path, Err: err}
	}
	return tree, nil
}

// Scratch makes a file system in memory, limited in size and in the number of files. Its contents count
// against the control group of the writer. The caller owns the descriptor.
func Scratch(bytes int64, o box.Owner) (int, error) {
	return bind.Make("tmpfs", [][2]string{
		{"size", strconv.FormatInt(bytes, 10)}, {"nr_inodes", strconv.FormatInt(ScratchFiles(bytes), 10)}, {"mode", "1777"},
		{"uid", strconv.Itoa(o.UID)}, {"gid", strconv.Itoa(o.GID)},
	}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
