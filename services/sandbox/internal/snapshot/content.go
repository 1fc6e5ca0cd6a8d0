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

// chunkSize is the largest part of a file in one object. Of a larger file only changed chunks are stored.
const chunkSize = 1 << 20

// readAttempts limits how often a file is read again that changed while it was read.
const readAttempts = 3

// errNotRegular means that a file is not, or no longer, a regular one.
var errNotRegular = errors.New("it is not a regular file")

// sink takes objects: it stores them, or only computes their hashes.
type sink func([]byte) (Hash, error)

func justHash(b []byte) (Hash, error) { return sha256.Sum256(b), nil }

// openRegular opens a regular file of the workspace for reading.
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

// openClosed opens a file although its owner lacks rights to it or to its directories. shut takes the
// rights away again.
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

// seen is the state of a file when its reading began.
type seen struct {
	st             unix.Stat_t
	steady         bool // it did not change while it was read
	changesVisible bool // every later store changes its times
}

// contents reads a file into a sink, up to its size when the reading began. It repeats that if the file
// changed meanwhile.
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
		return now, asChanged(err)
	}
	defer func() { _ = f.Close() }()
	defer shut()
	now.changesVisible = t.makeChangesVisible(f)
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

// digest passes a file's first size bytes to a sink, a chunk at a time, and returns the hash for their
// entry. Missing bytes at the end read as zeros.
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

// storeChunk passes a chunk on. A chunk of zeros is a hole instead, and a restore makes it one again in a
// sparse file.
func storeChunk(b []byte, to sink) (Hash, error) {
	if zero(b) {
		return Hash{}, nil
	}
	return to(b)
}

// data returns the offset of a sparse file's next data, at or after an offset.
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

// chunk reads a part of a file.
func chunk(f *os.File, at int64, b []byte) ([]byte, error) {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		clear(b[n:]) // it became shorter and is read again
		err = nil
	}
	return b, err
}

// write writes a regular file's contents. Holes stay holes; in a sparse file blocks of zeros become holes.
// It calls takes before it writes bytes.
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

// chunks returns the hashes of a large file's chunks; zero stands for a hole.
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

// objects returns the objects that hold a regular file: its contents, or its list of chunks and the chunks.
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

// chunk reads a chunk; a hole reads as zeros.
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
