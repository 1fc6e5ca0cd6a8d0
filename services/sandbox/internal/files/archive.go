package files

import (
	"archive/tar"
	"archive/zip"
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

// ErrArchive means that an archive cannot be unpacked into a workspace.
var ErrArchive = errors.New("the archive cannot be unpacked")

// Format is the format of an archive.
type Format int

// Formats.
const (
	Tar Format = iota
	TarGzip
	Zip
)

// archiveWriter writes an archive of any format: for each file a header, and then its contents.
type archiveWriter interface {
	WriteHeader(*tar.Header) error
	io.WriteCloser
}

func (f Format) writer(to io.Writer) archiveWriter {
	switch f {
	case TarGzip:
		return newTarGzip(to)
	case Zip:
		return &zipWriter{out: zip.NewWriter(to)}
	default:
		return tar.NewWriter(to)
	}
}

// Pack writes a directory as an archive: files, directories and links, following none, with paths relative
// to it. It leaves out other files, and files that vanish meanwhile. It fails with ErrExport if it cannot
// read a file.
func (t *Tree) Pack(ctx context.Context, name string, format Format, to io.Writer) error {
	name, err := Clean(name)
	if err != nil {
		return err
	}
	root, err := t.directory(name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	p := packer{out: format.writer(to)}
	w := p.walker(ctx)
	if err := w.walk(root, "", 0); err != nil {
		return err
	}
	return p.out.Close()
}

type packer struct{ out archiveWriter }

func (p packer) walker(ctx context.Context) *walker {
	return &walker{ctx: ctx, visit: p.entry, skip: func(_, _ string) bool { return false }, closed: true, refuse: unreadable}
}

// unreadable returns the error for a file that cannot be packed.
func unreadable(name string, why error) error {
	var errno unix.Errno
	switch {
	case errors.Is(why, unix.EACCES), errors.Is(why, unix.EPERM):
		why = errClosed
	case errors.As(why, &errno): // a failure of the disk
		return fmt.Errorf("read %.200s: %w", name, why)
	}
	return fmt.Errorf("%w: %.200s %w", ErrExport, name, why)
}

// entry writes one file's header and contents.
func (p packer) entry(dir *os.File, last, name string, st *unix.Stat_t) error {
	h := &tar.Header{
		Name: name, Mode: int64(st.Mode & 0o777), ModTime: time.Unix(st.Mtim.Sec, st.Mtim.Nsec), Format: tar.FormatPAX,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return p.out.WriteHeader(h)
	case unix.S_IFLNK:
		target, err := readLink(int(dir.Fd()), last)
		if err != nil {
			return nil //nolint:nilerr // it vanished
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return p.out.WriteHeader(h)
	case unix.S_IFREG:
		return p.regular(dir, last, h)
	default:
		return nil
	}
}

// regular writes a regular file, up to its current size.
func (p packer) regular(dir *os.File, last string, h *tar.Header) error {
	f, err := openClosed(int(dir.Fd()), last)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return unreadable(h.Name, err)
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil // it was put there meanwhile
	}
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	if err := p.out.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(p.out, io.LimitReader(f, st.Size))
	if err != nil {
		return err
	}
	if n < st.Size {
		return unreadable(h.Name, errShorter)
	}
	return nil
}

// readLink reads the target of a link.
func readLink(dir int, last string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, last, buffer)
	return string(buffer[:max(n, 0)]), err
}

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
	u := unpacker{tree: t, in: &proportionate{in: in, packed: packed}, reserve: reserve, dirs: map[string]folder{}, names: maxNames}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) && source.over {
			return fmt.Errorf("%w: it stops before the two empty blocks that end a tar, so it may have been cut off", ErrArchive)
		}
		if errors.Is(err, io.EOF) {
			return u.finish()
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

type unpacker struct {
	tree    *Tree
	in      io.Reader // the entry's contents
	reserve func(bytes int64) error
	dirs    map[string]folder // their final state, by clean name
	names   int               // bytes left for the names of further ones
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
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(u.tree.root.Fd()), path.Dir(name), &how)
	switch {
	case err == nil:
		return name, unix.Close(fd)
	case errors.Is(err, unix.ENOENT):
		return name, nil // its directories are made with it
	default:
		return "", fmt.Errorf("%w: %.200q: %w", ErrArchive, asked, refine(name, err))
	}
}

func (u *unpacker) regular(name string, h *tar.Header) error {
	if err := u.reserve(h.Size); err != nil {
		return err
	}
	d, err := u.tree.Draft()
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := io.Copy(d, u.in); err != nil {
		return broken(err)
	}
	if err := setTimes(unix.AT_FDCWD, d.file.Name(), h.ModTime); err != nil {
		return err
	}
	// Put replaces a mode of zero by its default: a file without any right gets its mode afterwards.
	_, _, err = u.tree.Put(d, name, Target{CreateOnly: true, Mode: uint32(h.Mode) & 0o777})
	if err == nil && h.Mode&0o777 == 0 {
		err = unix.Fchmod(int(d.file.Fd()), 0)
	}
	return badEntry(h, err)
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
	if err := u.tree.makeDirectories(path.Dir(name)); err != nil {
		return badEntry(h, err)
	}
	dir, last, err := u.tree.parent(name)
	if err != nil {
		return badEntry(h, err)
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Symlinkat(h.Linkname, int(dir.Fd()), last); err != nil {
		return badEntry(h, refine(name, err))
	}
	if err := u.tree.own(dir, last); err != nil {
		return err
	}
	return setTimes(int(dir.Fd()), last, h.ModTime)
}

// own gives a file to the workspace's user, following no link.
func (t *Tree) own(dir *os.File, last string) error {
	if t.owner.UID < 0 {
		return nil
	}
	return unix.Fchownat(int(dir.Fd()), last, t.owner.UID, t.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

// finish sets the modes and times of the directories, deepest first. Adding a file to a directory changes
// its time, and may need more rights than its final mode gives.
func (u *unpacker) finish() error {
	names := slices.SortedFunc(maps.Keys(u.dirs), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	for _, name := range names {
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
