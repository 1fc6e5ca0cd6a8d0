package files

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
