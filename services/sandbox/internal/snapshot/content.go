package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// chunkSize is the most of a file that one object holds. Of a larger file only the
// chunks are stored that changed.
const chunkSize = 1 << 20

// readAttempts bounds how often a file is read again that changed while it was
// read.
const readAttempts = 3

// errNotRegular says that a file is not, or is not any more, a regular one.
var errNotRegular = errors.New("it is not a regular file")

// sink takes objects: it stores them, or only says their hashes.
type sink func([]byte) (Hash, error)

func justHash(b []byte) (Hash, error) { return sha256.Sum256(b), nil }

// openRegular opens a regular file of the workspace to read it.
func (t *Tree) openRegular(name string) (f *os.File, shut func(), err error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	shut = func() {}
	f, err = t.open(name, flags)
	if errors.Is(err, unix.EACCES) {
		f, shut, err = t.openClosed(name)
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ELOOP) {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, err
	}
	st, err := stat(f)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		shut()
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, shut, nil
}

// openClosed opens a file to which, or to whose directories, the owner has taken
// its own rights. They are taken away again by shut.
func (t *Tree) openClosed(name string) (_ *os.File, shut func(), err error) {
	var undo []func()
	undoAll := func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	defer func() {
		if err != nil {
			undoAll()
		}
	}()
	dir := int(t.root.Fd())
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		path, back, err := rights.Lend(dir, part, 0o500)
		if err != nil {
			return nil, nil, err
		}
		undo = append(undo, back)
		dir, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, nil, err
		}
		opened := dir
		undo = append(undo, func() { _ = unix.Close(opened) })
	}
	path, back, err := rights.Lend(dir, parts[len(parts)-1], 0o400)
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, back)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), name), undoAll, nil
}

func stat(f *os.File) (st unix.Stat_t, err error) {
	return st, unix.Fstat(int(f.Fd()), &st)
}

// seen is what a file was when the reading of it began.
type seen struct {
	st     unix.Stat_t
	steady bool // it held still while it was read
	told   bool // whatever is stored to it later shows in its times
}

// contents reads a file into a sink: as long as it was when the reading began, and
// again when it changed meanwhile.
func (t *Tree) contents(e *Entry, to sink, buffer []byte) (now seen, err error) {
	for range readAttempts {
		now, err = t.once(e, to, buffer)
		if err != nil || now.steady {
			return now, err
		}
	}
	return now, nil
}

func (t *Tree) once(e *Entry, to sink, buffer []byte) (now seen, err error) {
	f, shut, err := t.openRegular(e.Path)
	if err != nil {
		return now, meanwhile(err)
	}
	defer func() { _ = f.Close() }()
	defer shut()
	now.told = t.tell(f)
	if now.st, err = stat(f); err != nil {
		return now, err
	}
	e.Size, e.Sparse = now.st.Size, sparse(&now.st)
	if e.Hash, err = digest(f, e.Size, e.Sparse, to, buffer); err != nil {
		return now, err
	}
	after, err := stat(f)
	now.steady = after.Size == now.st.Size && after.Mtim == now.st.Mtim && after.Ctim == now.st.Ctim
	e.Mtime = nanoseconds(now.st.Mtim)
	return now, err
}

// digest hands a file's first size bytes on, a chunk at a time, and returns the
// hash that an entry of them has. What is missing at the end reads as zeros.
func digest(f *os.File, size int64, holes bool, to sink, buffer []byte) (Hash, error) {
	if size <= chunkSize {
		b, err := chunk(f, 0, buffer[:size])
		if err != nil {
			return Hash{}, err
		}
		return to(b)
	}
	if (size+chunkSize-1)/chunkSize*int64(len(Hash{})) > maxObject {
		return Hash{}, fmt.Errorf("a file of %d bytes is too large to be kept", size)
	}
	var list []byte
	next := int64(0) // where the next data may be
	for at := int64(0); at < size; at += chunkSize {
		b := buffer[:min(chunkSize, size-at)]
		if holes && next < at+int64(len(b)) {
			next = data(f, at, size)
		}
		h := Hash{}
		if !holes || next < at+int64(len(b)) {
			got, err := chunk(f, at, b)
			if err != nil {
				return Hash{}, err
			}
			if h, err = storeChunk(got, to); err != nil {
				return Hash{}, err
			}
		}
		list = append(list, h[:]...)
	}
	return to(list)
}

// storeChunk hands a chunk on, unless it is all zeros: then it is a hole to us, and
// becomes one again in a file that has holes.
func storeChunk(b []byte, to sink) (Hash, error) {
	if zero(b) {
		return Hash{}, nil
	}
	return to(b)
}

// data is where a sparse file's next bytes are, at or after an offset.
func data(f *os.File, at, size int64) int64 {
	next, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size
	}
	if err != nil {
		return at
	}
	return next
}

// chunk reads a piece of a file.
func chunk(f *os.File, at int64, b []byte) ([]byte, error) {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		clear(b[n:]) // it became shorter: it is read again
		err = nil
	}
	return b, err
}

// write writes a regular file's contents. Chunks that are holes stay holes; in a
// sparse file so do blocks of zeros. takes is asked before bytes are written.
func (s *Store) write(e Entry, f *os.File, takes func(bytes int) error) error {
	if e.Size <= chunkSize {
		b, err := s.packs.read(e.Hash)
		if err != nil {
			return err
		}
		if int64(len(b)) != e.Size {
			return fmt.Errorf("%w: %.200s is of another size", ErrDamaged, e.Path)
		}
		return writeChunk(f, b, 0, e, takes)
	}
	hashes, err := s.chunks(e)
	if err != nil {
		return err
	}
	for i, h := range hashes {
		at := int64(i) * chunkSize
		b, err := s.chunk(h, min(chunkSize, e.Size-at))
		if err != nil {
			return err
		}
		if int64(len(b)) != min(chunkSize, e.Size-at) {
			return fmt.Errorf("%w: a part of %.200s is of another size", ErrDamaged, e.Path)
		}
		if err := writeChunk(f, b, at, e, takes); err != nil {
			return err
		}
	}
	return f.Truncate(e.Size)
}

// chunks are the hashes of a large file's chunks; zero stands for a hole.
func (s *Store) chunks(e Entry) ([]Hash, error) {
	b, err := s.packs.read(e.Hash)
	if err != nil {
		return nil, err
	}
	n := (e.Size + chunkSize - 1) / chunkSize
	if int64(len(b)) != n*int64(len(Hash{})) {
		return nil, fmt.Errorf("%w: %.200s is of another size", ErrDamaged, e.Path)
	}
	hashes := make([]Hash, n)
	for i := range hashes {
		hashes[i] = Hash(b[i*len(Hash{}):])
	}
	return hashes, nil
}

// objects are those that hold a regular file: its contents, or its list of chunks and
// the chunks.
func (s *Store) objects(e Entry) ([]Hash, error) {
	if e.Size <= chunkSize {
		return []Hash{e.Hash}, nil
	}
	chunks, err := s.chunks(e)
	if err != nil {
		return nil, err
	}
	return append(slices.DeleteFunc(chunks, func(h Hash) bool { return h == Hash{} }), e.Hash), nil
}

// chunk reads a chunk; a hole is zeros.
func (s *Store) chunk(h Hash, size int64) ([]byte, error) {
	if h == (Hash{}) {
		return make([]byte, size), nil
	}
	return s.packs.read(h)
}

// zero reports whether all bytes are zero.
func zero(b []byte) bool {
	for len(b) > 0 {
		n := min(block, len(b))
		if string(b[:n]) != string(zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

const block = 4096

var zeros [block]byte

func writeChunk(f *os.File, b []byte, at int64, e Entry, takes func(bytes int) error) error {
	if !e.Sparse {
		if err := takes(len(b)); err != nil {
			return err
		}
		_, err := f.WriteAt(b, at)
		return err
	}
	for len(b) > 0 {
		n := min(block, len(b))
		if string(b[:n]) != string(zeros[:n]) {
			if err := takes(n); err != nil {
				return err
			}
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		b, at = b[n:], at+int64(n)
	}
	return f.Truncate(e.Size)
}
