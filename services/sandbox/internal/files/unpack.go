package files

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unpack writes a tar into an empty workspace in which nothing runs. It calls reserve before each entry
// takes its bytes on disk. After an error a part may be there.
func (t *Tree) Unpack(ctx context.Context, from io.Reader, reserve func(bytes int64) error) error {
	packed := &counted{from: from}
	return t.unpack(ctx, packed, packed, reserve)
}

// unpack is Unpack of a tar that arrives as so many bytes. Holes of its files are left out.
func (t *Tree) unpack(ctx context.Context, from io.Reader, packed *counted, reserve func(bytes int64) error) error {
	source := &ending{from: from}
	in := tar.NewReader(source)
	u := newUnpacker(t, reserve)
	defer u.close()
	u.in = &proportionate{in: in, packed: packed}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) && source.over {
			return fmt.Errorf("%w: it stops before the two empty blocks that end a tar, so it may have been cut off", ErrArchive)
		}
		if errors.Is(err, io.EOF) {
			return u.finish(ctx)
		}
		if err != nil {
			return broken(err)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
}

// ending records a read past the end. A tar.Reader accepts an archive that stops between two entries; POSIX
// (pax, "ustar Interchange Format") requires two blocks of zeros at the end.
type ending struct {
	from io.Reader
	over bool
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	e.over = e.over || n == 0 && len(p) > 0 && errors.Is(err, io.EOF)
	return n, err
}

// broken turns an error of an unreadable archive into ErrArchive, but not an error of its source.
func broken(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) ||
		isBadZip(err) || isBadGzip(err) {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	return err
}

// unpacker writes entries directly into their place, because nothing else uses the tree yet.
type unpacker struct {
	tree    *Tree
	in      io.Reader // the entry's contents
	reserve func(bytes int64) error
	dirs    map[string]folder // their final state, by clean name
	names   int               // bytes left for the names of further ones
	parent  *os.File          // the folder of the last entry, which the next one mostly shares; nil before the first
	within  string            // its clean name
	buffer  []byte            // for contents
}

func newUnpacker(t *Tree, reserve func(bytes int64) error) *unpacker {
	return &unpacker{tree: t, reserve: reserve, dirs: map[string]folder{}, names: maxNames, buffer: make([]byte, 64<<10)}
}

func (u *unpacker) close() {
	if u.parent != nil {
		_ = u.parent.Close()
	}
}

// maxNames is how many bytes the names of all folders of an archive may have, because they are kept until
// its end.
const maxNames = 64 << 20

// folder is the final state of a folder.
type folder struct {
	mode int64
	time time.Time
}

func (u *unpacker) entry(h *tar.Header) error {
	name, err := u.name(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.regular(name, h)
	case tar.TypeDir:
		return u.directory(name, h)
	case tar.TypeSymlink:
		return u.symlink(name, h)
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("%w: %.200q is of the type %q; only files, directories and symbolic links may be in it", ErrArchive, h.Name, h.Typeflag)
	}
}

// name checks an entry's name: it must be relative, inside, and through no link. The kernel checks again
// when the name is used.
func (u *unpacker) name(asked string) (string, error) {
	if path.IsAbs(asked) || asked == "" {
		return "", fmt.Errorf("%w: %.200q is not a relative path", ErrArchive, asked)
	}
	name, err := Clean(asked)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %.200q: %w", ErrArchive, asked, err)
	case strings.Count(name, "/") > maxDepth:
		return "", fmt.Errorf("%w: %.200q is nested more than %d directories deep", ErrArchive, asked, maxDepth)
	case len(name) > 4000:
		return "", fmt.Errorf("%w: %.200q is too long", ErrArchive, asked)
	}
	if err := u.enter(path.Dir(name)); err != nil && !errors.Is(err, unix.ENOENT) { // its directories are made with it
		return "", fmt.Errorf("%w: %.200q: %w", ErrArchive, asked, refine(name, err))
	}
	return name, nil
}

// enter makes a folder the parent of the next entry, following no link.
func (u *unpacker) enter(name string) error {
	if u.parent != nil && u.within == name {
		return nil
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(u.tree.root.Fd()), name, &how)
	if err != nil {
		return err
	}
	u.close()
	u.parent, u.within = os.NewFile(uintptr(fd), name), strings.Clone(name)
	return nil
}

// place makes the folders that lead to an entry, and returns the entry's folder and the name in it.
func (u *unpacker) place(name string) (dir int, last string, err error) {
	if name == "." {
		return -1, "", fmt.Errorf("%w: the workspace itself is a directory", ErrWrongType)
	}
	parent := path.Dir(name)
	if err := u.enter(parent); err != nil {
		if err := u.tree.makeDirectories(parent); err != nil {
			return -1, "", err
		}
		if err := u.enter(parent); err != nil {
			return -1, "", refine(name, err)
		}
	}
	return int(u.parent.Fd()), path.Base(name), nil
}

func (u *unpacker) regular(name string, h *tar.Header) error {
	if err := u.reserve(h.Size); err != nil {
		return err
	}
	dir, last, err := u.place(name)
	if err != nil {
		return badEntry(h, err)
	}
	fd, err := unix.Openat(dir, last, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if full(err) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return badEntry(h, refine(name, err))
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	if _, err := io.CopyBuffer(onlyWriter{f}, u.in, u.buffer); err != nil {
		_ = unix.Unlinkat(dir, last, 0) // it is not whole
		if full(err) {
			err = fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
		return broken(err)
	}
	if err := u.settle(dir, last, fd, h); err != nil || h.Size == 0 || h.Mode&0o111 == 0 {
		return errors.Join(err, f.Close())
	}
	f, err = finish(f) // it may be executed
	return err
}

// onlyWriter hides that a file can read from a source by itself, which would take a buffer for each file.
type onlyWriter struct{ io.Writer }

// settle gives a file its owner, mode and time.
func (u *unpacker) settle(dir int, last string, fd int, h *tar.Header) error {
	if o := u.tree.owner; o.UID >= 0 {
		if err := unix.Fchown(fd, o.UID, o.GID); err != nil {
			return fmt.Errorf("give the file to the workspace's user: %w", err)
		}
	}
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o777); err != nil {
		return err
	}
	return setTimes(dir, last, h.ModTime)
}

// badEntry returns the error for an entry that cannot be put in place.
func badEntry(h *tar.Header, err error) error {
	if errors.Is(err, ErrExists) || errors.Is(err, ErrWrongType) || errors.Is(err, ErrEscapes) || errors.Is(err, ErrName) {
		return fmt.Errorf("%w: %.200q: %w", ErrArchive, h.Name, err)
	}
	return err
}

// setTimes sets the times of a file or of a link itself.
func setTimes(dir int, name string, at time.Time) error {
	if at.IsZero() || at.Unix() < 0 || at.Year() > 9999 {
		at = time.Unix(0, 0)
	}
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpacker) directory(name string, h *tar.Header) error {
	if name == "." {
		return nil // the service manages the workspace's own mode
	}
	if err := u.tree.makeDirectories(name); err != nil {
		return badEntry(h, err)
	}
	if _, again := u.dirs[name]; !again {
		if u.names -= len(name); u.names < 0 {
			return fmt.Errorf("%w: the names of its folders are too long together", ErrArchive)
		}
	}
	u.dirs[strings.Clone(name)] = folder{h.Mode, h.ModTime}
	return nil
}

func (u *unpacker) symlink(name string, h *tar.Header) error {
	if h.Linkname == "" || len(h.Linkname) >= unix.PathMax || strings.ContainsRune(h.Linkname, 0) || name == "." {
		return fmt.Errorf("%w: the link %.200q has an invalid target", ErrArchive, h.Name)
	}
	if err := u.reserve(int64(len(h.Linkname))); err != nil {
		return err
	}
	dir, last, err := u.place(name)
	if err != nil {
		return badEntry(h, err)
	}
	if err := unix.Symlinkat(h.Linkname, dir, last); err != nil {
		return badEntry(h, refine(name, err))
	}
	if o := u.tree.owner; o.UID >= 0 {
		if err := unix.Fchownat(dir, last, o.UID, o.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return setTimes(dir, last, h.ModTime)
}

// finish sets the modes and times of the directories, deepest first. Adding a file to a directory changes
// its time, and may need more rights than its final mode gives.
func (u *unpacker) finish(ctx context.Context) error {
	names := slices.SortedFunc(maps.Keys(u.dirs), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := u.finishDirectory(name, u.dirs[name]); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) finishDirectory(name string, f folder) error {
	h := &tar.Header{Name: name}
	dir, last, err := u.tree.parent(name)
	if err != nil {
		return badEntry(h, err)
	}
	defer func() { _ = dir.Close() }()
	fd, err := unix.Openat(int(dir.Fd()), last, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return badEntry(h, refine(name, err))
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Fchmod(fd, uint32(f.mode)&0o777); err != nil {
		return err
	}
	return setTimes(int(dir.Fd()), last, f.time)
}
