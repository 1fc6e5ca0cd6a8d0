package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Kind is the kind of an entry.
type Kind uint8

// Kinds.
const (
	Regular Kind = iota + 1
	Directory
	Symlink
)

// keptBits are the mode bits that snapshots keep: all of them. A command can set set-user-id and
// set-group-id on its own files, and a restore creates no other files. So keeping these bits grants no
// further rights.
const keptBits = 0o7777

// lateBits are set-user-id and set-group-id. Versions that did not keep these bits treat them as damage, so
// a list stores them in the upper half of the number. Such a version ignores that half: it reads the list
// and restores all other bits.
const lateBits, half = 0o6000, 32

// Entry is one file of a snapshot.
type Entry struct {
	Path  string // relative to the workspace
	Kind  Kind
	Mode  uint32 // permissions, with keptBits
	Mtime int64  // nanoseconds since 1970
	Size  int64  // of a regular file
	// Sparse means that the file had holes, which a restore makes again. It is not part of a file's state:
	// a file system may free blocks by itself.
	Sparse bool
	// Hash is the object with a regular file's contents. For a file larger than one chunk, the object lists
	// the hashes of the chunks.
	Hash   Hash
	Target string // of a symbolic link
}

// same reports whether two entries are the same file in the same state, apart from its modification time
// and its holes.
func (e Entry) same(o Entry) bool {
	o.Mtime, o.Sparse = e.Mtime, e.Sparse
	return e == o
}

// before orders paths as a walk meets them: a directory, its contents, and then the rest. That is the order
// of the bytes, with the slash as the lowest.
func before(a, b string) bool { return compare(a, b) < 0 }

func compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		case a[i] < b[i]:
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// below reports whether a path lies in a directory.
func below(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

const sparseFlag = 0x80

// appendEntry writes an entry, and of its path only the part that differs from the previous one.
func appendEntry(b []byte, e Entry, previous string) []byte {
	kind := byte(e.Kind)
	if e.Sparse {
		kind |= sparseFlag
	}
	b = append(b, kind)
	shared := 0
	for shared < min(len(previous), len(e.Path)) && previous[shared] == e.Path[shared] {
		shared++
	}
	b = binary.AppendUvarint(b, uint64(shared))
	b = appendString(b, e.Path[shared:])
	b = binary.AppendUvarint(b, uint64(e.Mode&^lateBits)|uint64(e.Mode&lateBits)<<half)
	b = binary.AppendVarint(b, e.Mtime)
	switch e.Kind {
	case Regular:
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(b, e.Hash[:]...)
	case Symlink:
		b = appendString(b, e.Target)
	case Directory:
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reading decodes the output of appendEntry and its like. After the first fault all values are zero.
type reading struct {
	b    []byte
	fail error
}

var errEncoding = errors.New("it is not encoded as it should be")

func (r *reading) bad() {
	r.b = nil
	r.fail = errEncoding
}

func (r *reading) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reading) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reading) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reading) hash() (h Hash) {
	copy(h[:], r.bytes(uint64(len(h))))
	return h
}

// mode reads the two halves of a mode.
func (r *reading) mode() uint32 {
	v := r.uvarint()
	plain, late := uint32(v), uint32(v>>half)
	if plain&lateBits != 0 || late&^lateBits != 0 {
		r.bad()
	}
	return plain | late
}

// entry reads the entry that follows the one with the path previous.
func (r *reading) entry(previous string) Entry {
	var e Entry
	if kind := r.bytes(1); len(kind) == 1 {
		e.Kind, e.Sparse = Kind(kind[0]&^sparseFlag), kind[0]&sparseFlag != 0
	}
	shared := r.uvarint()
	if shared > uint64(len(previous)) {
		r.bad()
		return e
	}
	e.Path = previous[:shared] + string(r.bytes(r.uvarint()))
	e.Mode = r.mode()
	e.Mtime = r.varint()
	switch e.Kind {
	case Regular:
		e.Size = int64(r.uvarint())
		e.Hash = r.hash()
	case Symlink:
		e.Target = string(r.bytes(r.uvarint()))
	case Directory:
	default:
		r.bad()
	}
	return e
}

// valid refuses an entry that no walk of a workspace can make.
func (e Entry) valid() error {
	switch {
	case e.Path == "" || e.Size < 0 || e.Mode&^keptBits != 0 || strings.ContainsRune(e.Path, 0):
	case e.Kind == Symlink && (e.Target == "" || strings.ContainsRune(e.Target, 0)):
	default:
		for part := range strings.SplitSeq(e.Path, "/") {
			if part == "" || part == "." || part == ".." {
				return fmt.Errorf("%w: %.200q is not a path in a workspace", errEncoding, e.Path)
			}
		}
		return nil
	}
	return fmt.Errorf("%w: the entry of %.200q is not valid", errEncoding, e.Path)
}
