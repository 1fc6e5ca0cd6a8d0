package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// zipWriter writes a zip. It stores modes and links as Unix tools do: in the external attributes of the
// directory at the end.
type zipWriter struct {
	out     *zip.Writer
	current io.Writer
}

// WriteHeader implements archiveWriter.
func (w *zipWriter) WriteHeader(h *tar.Header) (err error) {
	f := &zip.FileHeader{Name: h.Name, Modified: zipTime(h.ModTime), Method: zip.Deflate}
	mode := fs.FileMode(h.Mode & 0o777)
	switch h.Typeflag {
	case tar.TypeDir:
		mode |= fs.ModeDir
		f.Method = zip.Store
	case tar.TypeSymlink:
		mode |= fs.ModeSymlink
		f.Method = zip.Store
	}
	f.SetMode(mode)
	if w.current, err = w.out.CreateHeader(f); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		_, err = io.WriteString(w.current, h.Linkname)
	}
	return err
}

// zipTime returns the nearest time that a zip can store: 32 bits of seconds since 1970.
func zipTime(t time.Time) time.Time {
	return time.Unix(min(max(t.Unix(), 0), math.MaxUint32), 0)
}

func (w *zipWriter) Write(b []byte) (int, error) { return w.current.Write(b) }
func (w *zipWriter) Close() error                { return w.out.Close() }

// UnpackZip is Unpack for a zip of size bytes. It allows at most entries entries, because the directory is
// read into memory.
func (t *Tree) UnpackZip(ctx context.Context, from io.ReaderAt, size, entries int64, reserve func(bytes int64) error) error {
	entries = max(entries, 1)
	if err := checkDirectory(from, size, entries); err != nil {
		return err
	}
	directory := &directoryReader{from: from, most: entries}
	in, err := zip.NewReader(directory, size)
	if errors.Is(err, io.EOF) { // in the middle of the directory
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return broken(err)
	}
	directory.most = 0
	if int64(len(in.File)) > entries {
		return tooMany(entries)
	}
	if err := checkSizes(in, size); err != nil {
		return err
	}
	u := newUnpacker(t, reserve)
	defer u.close()
	for _, f := range in.File {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := u.zipped(f); err != nil {
			return err
		}
	}
	return u.finish(ctx)
}

// maxDirectory is the largest size of a zip's directory, in bytes for each allowed entry: names are mostly
// short.
const maxDirectory = 512

// checkDirectory refuses a zip whose directory is too large, by the number of entries and bytes at the end
// of the archive.
func checkDirectory(from io.ReaderAt, size, most int64) error {
	bad := fmt.Errorf("%w: it is not a zip, or its end is missing", ErrArchive)
	tail := make([]byte, min(size, 22+1<<16))
	if _, err := from.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := bytes.LastIndex(tail, []byte(endMark))
	if at < 0 || len(tail)-at < 22 {
		return bad
	}
	entries := uint64(binary.LittleEndian.Uint16(tail[at+10:]))
	length := uint64(binary.LittleEndian.Uint32(tail[at+12:]))
	switch {
	case at >= 20 && bytes.HasPrefix(tail[at-20:], []byte("PK\x06\x07")): // a 64-bit end record exists, which readers may prefer
		end := make([]byte, 56)
		place := binary.LittleEndian.Uint64(tail[at-12:])
		if place > uint64(size) {
			return bad
		}
		if _, err := from.ReadAt(end, int64(place)); err != nil || !bytes.HasPrefix(end, []byte("PK\x06\x06")) {
			return bad
		}
		entries = wider(entries, 0xffff, binary.LittleEndian.Uint64(end[32:]))
		length = wider(length, 0xffffffff, binary.LittleEndian.Uint64(end[40:]))
	case entries == 0xffff, length == 0xffffffff:
		return bad
	}
	if entries > uint64(most) || length > uint64(most)*maxDirectory {
		return fmt.Errorf("%w: it has %d entries, and a directory of %d bytes: there may be %d entries", ErrArchive, entries, length, most)
	}
	return nil
}

// wider returns the larger of a short number and a 64-bit one. If the short one refers to the other, only
// that counts.
func wider(short, refers, long uint64) uint64 {
	if short == refers {
		return long
	}
	return max(short, long)
}

func tooMany(most int64) error {
	return fmt.Errorf("%w: it has more than %d entries", ErrArchive, most)
}

// Marks of a zip: of an entry of its directory, and of its end.
const (
	entryMark = "PK\x01\x02"
	endMark   = "PK\x05\x06"
)

// Limits for locating the directory: readers read the end of the archive, and perhaps an entry. They may
// read so many bytes, with the marks of so many entries.
const (
	endBytes = 512 << 10
	endMarks = 2048
)

// directoryReader limits how much of a zip is read for its directory. The end states the directory's size,
// but readers continue while they find entries. Each entry has a mark, so it counts marks wherever a reader
// looks.
type directoryReader struct {
	from  io.ReaderAt
	most  int64 // entries; zero once the directory is read
	bytes int64 // read so far
	marks int64
	at    int64  // where the last read ended
	tail  []byte // its last bytes: a mark may span two reads
}

func (d *directoryReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := d.from.ReadAt(b, off)
	if d.most == 0 {
		return n, err
	}
	if off != d.at {
		d.tail = nil
	}
	d.bytes += int64(n)
	seen := append(d.tail, b[:n]...)
	d.marks += int64(bytes.Count(seen, []byte(entryMark)))
	d.at, d.tail = off+int64(n), bytes.Clone(seen[max(len(seen)-len(entryMark)+1, 0):])
	switch {
	case d.marks > d.most+endMarks:
		return 0, tooMany(d.most)
	case d.bytes > d.most*maxDirectory+endBytes:
		return 0, fmt.Errorf("%w: its directory is larger than %d bytes: there may be %d entries", ErrArchive, d.most*maxDirectory, d.most)
	}
	return n, err
}

// checkSizes refuses a zip whose parts overlap, or whose unpacked size is disproportionate.
func checkSizes(in *zip.Reader, size int64) error {
	var packed, unpacked uint64
	for _, f := range in.File {
		if f.CompressedSize64 > 1<<62 || f.UncompressedSize64 > 1<<62 {
			return fmt.Errorf("%w: %.200q has an impossible size", ErrArchive, f.Name)
		}
		packed, unpacked = min(packed+f.CompressedSize64, 1<<62), min(unpacked+f.UncompressedSize64, 1<<62)
	}
	if packed > uint64(size) {
		return fmt.Errorf("%w: its parts overlap", ErrArchive)
	}
	return inflated(size, int64(unpacked))
}

// encrypted is the flag of an encrypted entry.
const encrypted = 1

// zipped puts one entry in place.
func (u *unpacker) zipped(f *zip.File) error {
	h, err := zipHeader(f)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return u.entry(h)
	}
	content, err := f.Open()
	if err != nil {
		return broken(err)
	}
	defer func() { _ = content.Close() }()
	if h.Typeflag == tar.TypeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, unix.PathMax))
		if err != nil {
			return broken(err)
		}
		h.Linkname = string(target)
	}
	u.in = content
	return u.entry(h)
}

// zipHeader returns the tar header of an entry.
func zipHeader(f *zip.File) (*tar.Header, error) {
	h := &tar.Header{Name: f.Name, Typeflag: tar.TypeReg, ModTime: f.Modified, Size: int64(f.UncompressedSize64)}
	mode := f.Mode()
	h.Mode = int64(mode.Perm())
	const unixes, macos = 3, 19
	if creator := f.CreatorVersion >> 8; creator != unixes && creator != macos {
		h.Mode &^= 0o022 // it records only whether the file is writable
	}
	switch {
	case f.Flags&encrypted != 0:
		return nil, fmt.Errorf("%w: %.200q is encrypted", ErrArchive, f.Name)
	case mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
	case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
		h.Typeflag = tar.TypeDir
		if f.ExternalAttrs == 0 {
			h.Mode = 0o755
		}
	case f.ExternalAttrs == 0: // the tool that made it stores no modes
		h.Mode = 0o644
	case !mode.IsRegular():
		return nil, fmt.Errorf("%w: %.200q is neither a file nor a directory nor a symbolic link", ErrArchive, f.Name)
	}
	return h, nil
}

func isBadZip(err error) bool {
	return errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrInsecurePath)
}
