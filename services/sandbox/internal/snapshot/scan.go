package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// maxDepth is how deep folders may be nested, the same as for a workspace.
const maxDepth = 1000

// The names of a workspace's files and the targets of its links are in memory together during a walk. A
// file's path includes the names of its folders. So there is a common limit, which grows with the number of
// files.
const (
	manyNames = 256 << 20 // bytes: twice the size of the deepest folders with the longest names
	meanName  = 256       // and for each file
)

// Tree is an open workspace.
type Tree struct {
	// Room is called while a restore writes files beside the workspace, with the bytes and the names that
	// it will have written. If nil, everything is allowed.
	Room func(bytes, names int64) error
	// Points are folders of the workspace that a restore neither removes nor replaces, because the kernel
	// would remove the mounts over them. For a value of true it does not touch their contents either.
	Points map[string]bool
	// Aside is the suffix of the new names of entries in the way.
	Aside string

	root    *os.File
	kind    int64 // of its file system
	staging string
	owner   Owner
}

// Owner is the owner of restored files; UID -1 means the service's own user.
type Owner struct{ UID, GID int }

// OpenTree opens a workspace. staging is a folder on the same file system, closed to commands, for files
// that are not yet in place.
func OpenTree(dir, staging string, owner Owner) (*Tree, error) {
	fd, err := rights.Open(dir)
	if err != nil {
		return nil, err
	}
	t := &Tree{root: os.NewFile(uintptr(fd), dir), staging: staging, owner: owner}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.kind = int64(fs.Type) //nolint:unconvert // not the same type on every machine
	return t, nil
}

// Close closes the tree.
func (t *Tree) Close() error { return t.root.Close() }

// openAttempts limits the retries of a resolution that the kernel gave up because of a concurrent rename.
const openAttempts = 64

// longName is the longest part of a path that is resolved in one call: the kernel takes less than 4096
// bytes.
const longName = 2048

// open opens a path through directories only: it follows no link and reaches nothing outside.
func (t *Tree) open(name string, flags uint64) (*os.File, error) {
	dir := int(t.root.Fd())
	for len(name) > longName {
		cut := strings.LastIndexByte(name[:longName], '/')
		if cut < 0 {
			return nil, unix.ENAMETOOLONG
		}
		fd, err := openBeneath(dir, name[:cut], unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return nil, err
		}
		defer func() { _ = unix.Close(fd) }()
		dir, name = fd, name[cut+1:]
	}
	fd, err := openBeneath(dir, name, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openBeneath(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range openAttempts {
		fd, err := unix.Openat2(dir, name, &how)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		return fd, err
	}
	return -1, unix.EAGAIN
}

// found is a file of a walk.
type found struct {
	Entry
	st unix.Stat_t
}

// walk is one pass over the whole tree.
type walk struct {
	ctx     context.Context //nolint:containedctx // lives as long as one walk
	trusted int64           // a change at or after this time, in nanoseconds since 1970, is too young
	files   []found
	skipped []Skipped
	names   int64 // bytes of names and of targets of links
}

// scan lists the workspace, in order, without reading a file.
func (t *Tree) scan(ctx context.Context) (*walk, error) {
	w := &walk{ctx: ctx, trusted: time.Now().Add(-settling).UnixNano()}
	if err := rights.Keep(int(t.root.Fd()), ""); err != nil {
		return nil, err
	}
	fd, err := unix.Dup(int(t.root.Fd()))
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	// A separate descriptor: reading a directory moves its position.
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	_ = unix.Close(fd)
	if err != nil {
		return nil, err
	}
	root := os.NewFile(uintptr(own), ".")
	defer func() { _ = root.Close() }()
	return w, asChanged(w.directory(root, "", 0))
}

// raced are the kernel's errors if a path has changed since it was seen: it is gone, of another kind,
// present already, not empty, a link (whose mode cannot be set), repeatedly renamed, or closed.
var raced = []error{
	unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENOTEMPTY, unix.ELOOP, unix.EOPNOTSUPP, unix.EAGAIN, unix.EACCES,
}

// asChanged marks an error that a command has caused in the workspace's files, which is no failure of the
// disk.
func asChanged(err error) error {
	if slices.ContainsFunc(raced, func(r error) bool { return errors.Is(err, r) }) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

func (w *walk) directory(dir *os.File, name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: more than %d, at %.200s", ErrTooDeep, maxDepth, name)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	slices.Sort(names)
	prefix := ""
	if name != "" {
		prefix = name + "/"
	}
	for _, last := range names {
		if err := w.entry(dir, last, prefix+last, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(dir *os.File, last, name string, depth int) error {
	f := found{Entry: Entry{Path: name}}
	err := rights.Stat(int(dir.Fd()), last, &f.st)
	if err == nil && f.st.Mode&unix.S_IFMT == unix.S_IFLNK {
		f.Target, err = readLink(int(dir.Fd()), last)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL):
		return nil // it vanished or is no longer a link
	case err != nil:
		return fmt.Errorf("look at %.200s: %w", name, err)
	}
	if err := w.holds(len(name) + len(f.Target)); err != nil {
		return err
	}
	f.Mode, f.Mtime = f.st.Mode&keptBits, nanoseconds(f.st.Mtim)
	switch f.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		f.Kind = Regular
		f.Size, f.Sparse = f.st.Size, sparse(&f.st)
	case unix.S_IFLNK:
		f.Kind, f.Mode = Symlink, 0o777 // a link's permissions mean nothing
	case unix.S_IFDIR:
		f.Kind = Directory
		w.files = append(w.files, f)
		return w.enter(dir, last, f, depth)
	default:
		w.skipped = append(w.skipped, Skipped{Path: name, Why: special(f.st.Mode)})
		return nil
	}
	w.files = append(w.files, f)
	return nil
}

// holds refuses a workspace whose names take too much memory.
func (w *walk) holds(bytes int) error {
	if w.names += int64(bytes); w.names > manyNames+meanName*int64(len(w.files)) {
		return fmt.Errorf("%w: the names of the files in them, and what links hold, have more than %d bytes together", ErrTooDeep, manyNames)
	}
	return nil
}

// enter walks a directory. If the service has the same user as the commands, a command may have closed the
// directory: enter opens it for the walk.
func (w *walk) enter(dir *os.File, last string, f found, depth int) error {
	fd, back, err := rights.Folder(int(dir.Fd()), last, f.Mode)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		w.files = w.files[:len(w.files)-1]
		return nil // it vanished
	case err != nil:
		return fmt.Errorf("open %.200s: %w", f.Path, err)
	}
	defer back()
	sub := os.NewFile(uintptr(fd), f.Path)
	defer func() { _ = sub.Close() }()
	return w.directory(sub, f.Path, depth+1)
}

// readLink reads the target of a link.
func readLink(dir int, last string) (string, error) {
	var buffer [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, last, buffer[:])
	return string(buffer[:max(n, 0)]), err
}

// sparse reports whether at least one block of a file is a hole.
func sparse(st *unix.Stat_t) bool { return st.Blocks*512+block <= st.Size }

func special(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "it is a FIFO"
	case unix.S_IFSOCK:
		return "it is a socket"
	}
	return "it is a device"
}

// nanoseconds returns a time in nanoseconds since 1970. Programs can set times out of that range; these
// become the first or the last representable one.
func nanoseconds(t unix.Timespec) int64 {
	const last = math.MaxInt64 / int64(time.Second)
	switch {
	case t.Sec < -last:
		return math.MinInt64
	case t.Sec > last || t.Sec == last && t.Nsec > math.MaxInt64%int64(time.Second):
		return math.MaxInt64
	}
	return t.Nano()
}
