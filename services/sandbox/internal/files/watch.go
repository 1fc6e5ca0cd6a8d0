package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// maxWatched limits the directories of one watch: each takes kernel memory from a limit of the service's
// user.
const maxWatched = 4096

var (
	// ErrTooMany means that there are more directories than may be watched.
	ErrTooMany = errors.New("there are too many directories to watch")
	// ErrGone means that the workspace no longer exists.
	ErrGone = errors.New("the workspace was deleted")
)

// ChangeKind is what happened to a file.
type ChangeKind int

// Kinds of changes. Lost means that changes were lost: a mirror of the files must read all of them again.
const (
	Created ChangeKind = iota + 1
	Modified
	Deleted
	Lost
)

// Changed is a change of a file, directory or link.
type Changed struct {
	Kind ChangeKind
	Path string // relative to the workspace
}

const watched = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// ends are the changes after which a workspace may be gone. They are of its parent folder, because an open
// folder does not report its own end.
const ends = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// Watch reports changes below a directory, in their order. It ends when ctx ends, when report returns an
// error, or when the directory (ErrNotFound) or the workspace (ErrGone) is gone. When it has begun, it
// calls report once with nothing. Repeated changes of a file count once if they are read together. A
// renamed file is deleted and created, and a file that replaces another one at once is created. Watch
// follows no links.
func (t *Tree) Watch(ctx context.Context, name string, report func([]Changed) error) error {
	w, err := t.watch(name)
	if err != nil {
		return err
	}
	defer func() { _ = w.file.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := report(nil); err != nil {
		return err
	}
	return w.run(ctx, report)
}

// watch begins to watch a directory.
func (t *Tree) watch(name string) (*watch, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	switch {
	case errors.Is(err, unix.EMFILE):
		return nil, fmt.Errorf("%w on this machine: raise fs.inotify.max_user_instances", ErrTooMany)
	case err != nil:
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &watch{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), tree: t, top: name, names: map[int32]string{}}
	if err := cmp.Or(w.guard(), w.begin(), w.checkExists()); err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return w, nil
}

// watch is one run of Watch.
type watch struct {
	fd    int      // of inotify; File.Fd would make it blocking
	file  *os.File // the same descriptor
	tree  *Tree
	top   string           // the watched directory; everything below it is watched too
	names map[int32]string // of the directories, by watch descriptor
	above int32            // the watch of the workspace's parent folder
}

// workspace returns the root of the workspace, also if a mount is watched.
func (w *watch) workspace() *os.File {
	if w.tree.foreign {
		return w.tree.within.root
	}
	return w.tree.root
}

// guard watches for the end of the workspace, with the service's own rights: commands have no rights above
// it.
func (w *watch) guard() error {
	root := w.workspace()
	err := outside(func() error {
		return rights.Through(root, func() error {
			above, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d/..", root.Fd()), ends)
			w.above = int32(above)
			return err
		})
	})
	if err != nil {
		return refused(w.top, err)
	}
	return nil
}

// begin watches all existing directories.
func (w *watch) begin() error {
	dir, err := w.tree.directory(w.top)
	if err != nil {
		return err
	}
	return errors.Join(w.add(dir, w.top, nil), dir.Close())
}

// again watches all existing directories after the kernel has lost changes, which may include new or moved
// directories.
func (w *watch) again() error {
	old := w.names
	w.names = map[int32]string{}
	if err := w.begin(); err != nil {
		return err
	}
	for wd := range old {
		if _, still := w.names[wd]; !still {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
		}
	}
	return nil
}

// add watches a directory and all below it. It calls found for existing files, which may have appeared
// before the watch.
func (w *watch) add(dir *os.File, name string, found func(Changed)) error {
	if len(w.names) >= maxWatched {
		below := w.top
		if below == "." {
			below = "the workspace"
		}
		return fmt.Errorf("%w: %s has more than %d with those below it, which is the most for one watch: watch a folder in it that has less, several with a watch each", ErrTooMany, below, maxWatched)
	}
	// By the open directory, so that a command cannot substitute a link.
	wd, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), watched)
	if errors.Is(err, unix.ENOENT) {
		return nil // it was removed
	}
	if err != nil {
		return refused(name, err)
	}
	w.names[int32(wd)] = name
	entries, err := dir.ReadDir(-1)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	for _, e := range entries {
		full := path.Join(name, e.Name())
		if found != nil {
			found(Changed{Created, full})
		}
		if !e.IsDir() {
			continue
		}
		if err := w.enter(dir, e.Name(), full, found); err != nil {
			return err
		}
	}
	return nil
}

// refused returns the reason why the kernel does not watch a directory.
func refused(name string, err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w on this machine: raise fs.inotify.max_user_watches", ErrTooMany)
	}
	return fmt.Errorf("watch %s: %w", name, err)
}

// checkExists returns ErrGone if the workspace is no longer where it was opened.
func (w *watch) checkExists() error {
	return outside(func() error {
		root := w.workspace()
		var open, there unix.Stat_t
		if err := unix.Fstat(int(root.Fd()), &open); err != nil {
			return fmt.Errorf("watch files: %w", err)
		}
		if unix.Lstat(root.Name(), &there) != nil || identify(&there) != identify(&open) {
			return fmt.Errorf("%w: the watch ends with it", ErrGone)
		}
		return nil
	})
}

// enter watches a directory in another one, if it exists and is no link.
func (w *watch) enter(dir *os.File, last, full string, found func(Changed)) error {
	fd, err := unix.Openat(int(dir.Fd()), last, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // it vanished or is closed
	}
	sub := os.NewFile(uintptr(fd), full)
	return errors.Join(w.add(sub, full, found), sub.Close())
}

// run reads changes and reports them.
func (w *watch) run(ctx context.Context, report func([]Changed) error) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buffer)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("watch files: %w", err)
		}
		changes, err := w.decode(buffer[:n])
		if err != nil {
			return err
		}
		if len(changes) > 0 {
			if err := report(changes); err != nil {
				return err
			}
		}
		if len(w.names) == 0 {
			return cmp.Or(w.checkExists(), fmt.Errorf("%w: %s was deleted", ErrNotFound, w.top))
		}
	}
}

// decode turns the kernel's events into changes.
func (w *watch) decode(raw []byte) ([]Changed, error) {
	var batch changes
	for len(raw) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(raw))
		mask := binary.NativeEndian.Uint32(raw[4:])
		length := binary.NativeEndian.Uint32(raw[12:])
		last := string(bytes.TrimRight(raw[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length], "\x00"))
		raw = raw[unix.SizeofInotifyEvent+length:]
		if err := w.change(&batch, wd, mask, last); err != nil {
			return nil, err
		}
	}
	return batch.all, nil
}

func (w *watch) change(batch *changes, wd int32, mask uint32, last string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		batch.add(Changed{Kind: Lost})
		return cmp.Or(w.checkExists(), w.again())
	}
	if wd == w.above {
		return w.checkExists()
	}
	dir, known := w.names[wd]
	if mask&unix.IN_IGNORED != 0 {
		delete(w.names, wd)
		return nil
	}
	if known && dir == w.top && mask&unix.IN_MOVE_SELF != 0 {
		return cmp.Or(w.checkExists(), fmt.Errorf("%w: %s was moved", ErrNotFound, w.top))
	}
	if !known || last == "" {
		return nil // of the directory itself: its parent reports it
	}
	name := path.Join(dir, last)
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		batch.add(Changed{Created, name})
		if mask&unix.IN_ISDIR != 0 {
			return w.appeared(batch, name)
		}
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		return w.went(batch, name, mask&unix.IN_ISDIR != 0)
	default:
		batch.add(Changed{Modified, name})
	}
	return nil
}

// went reports that a name lost its file, unless another file has the name: after an exchange of two files
// the kernel reports the loss last. It always reports a directory, because of its contents.
func (w *watch) went(batch *changes, name string, folder bool) error {
	f, err := w.tree.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	there := err == nil
	if there {
		_ = f.Close()
	}
	if folder || !there {
		batch.add(Changed{Deleted, name})
	}
	if folder {
		w.forget(name)
		batch.forget(name)
	}
	if !there {
		return nil
	}
	batch.add(Changed{Created, name})
	return w.appeared(batch, name) // if it is a directory
}

// appeared watches a new directory and reports its contents.
func (w *watch) appeared(batch *changes, name string) error {
	dir, err := w.tree.open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil //nolint:nilerr // gone again, which is reported too
	}
	return errors.Join(w.add(dir, name, batch.add), dir.Close())
}

// forget stops watching a moved directory and all below it; it is watched anew under its new name.
func (w *watch) forget(name string) {
	for wd, dir := range w.names {
		if dir == name || strings.HasPrefix(dir, name+"/") {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
			delete(w.names, wd)
		}
	}
}

// changes collects changes; repeated changes of a file count once.
type changes struct {
	all      []Changed
	reported reported
}

// reported is the last report of a path, and those of the paths below. It is a tree, so that forgetting a
// folder does not visit all other paths.
type reported struct {
	last  ChangeKind
	below map[string]*reported
}

func (t *reported) at(name string) *reported {
	for part := range strings.SplitSeq(name, "/") {
		next := t.below[part]
		if next == nil {
			if t.below == nil {
				t.below = map[string]*reported{}
			}
			next = &reported{}
			t.below[part] = next
		}
		t = next
	}
	return t
}

func (c *changes) add(x Changed) {
	was := c.reported.at(x.Path)
	// A created and then written file counts as created.
	if was.last == x.Kind || was.last == Created && x.Kind == Modified {
		return
	}
	was.last = x.Kind
	c.all = append(c.all, x)
}

// forget makes the contents of a removed directory be reported anew.
func (c *changes) forget(name string) { c.reported.at(name).below = nil }
