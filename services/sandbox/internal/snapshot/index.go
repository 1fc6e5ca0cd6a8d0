package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// known is the state of a regular file when it was last read.
type known struct {
	path   string
	inode  uint64
	ctime  int64 // nanoseconds since 1970
	mtime  int64
	size   int64
	sparse bool
	hash   Hash
}

const indexMagic = "FLINDEX2"

// loadIndex reads the index, in the order of a walk. It returns none if the index is missing, damaged or of
// another start of the machine: the index is only a shortcut.
func (s *Store) loadIndex() []known {
	raw, err := os.ReadFile(filepath.Join(s.dir, indexFile))
	if err != nil || len(raw) < len(indexMagic)+sha256.Size || string(raw[:len(indexMagic)]) != indexMagic {
		return nil
	}
	body, sum := raw[len(indexMagic):len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil
	}
	r, previous := reading{b: body}, ""
	if boot := string(r.bytes(r.uvarint())); boot == "" || boot != s.boot {
		return nil
	}
	all := make([]known, 0, min(r.uvarint(), uint64(len(raw)/40)))
	for len(r.b) > 0 && r.fail == nil {
		e := r.entry(previous)
		k := known{path: e.Path, mtime: e.Mtime, size: e.Size, sparse: e.Sparse, hash: e.Hash}
		k.inode, k.ctime = r.uvarint(), r.varint()
		all, previous = append(all, k), e.Path
	}
	if r.fail != nil {
		return nil
	}
	return all
}

// saveIndex replaces the index. It need not be durable.
func (s *Store) saveIndex(all []known) error {
	b := make([]byte, 0, 96*len(all)+64)
	b = append(b, indexMagic...)
	b = appendString(b, s.boot)
	b = binary.AppendUvarint(b, uint64(len(all)))
	previous := ""
	for _, k := range all {
		b = appendEntry(b, Entry{Path: k.path, Kind: Regular, Mtime: k.mtime, Size: k.size, Sparse: k.sparse, Hash: k.hash}, previous)
		b = binary.AppendUvarint(b, k.inode)
		b = binary.AppendVarint(b, k.ctime)
		previous = k.path
	}
	sum := sha256.Sum256(b[len(indexMagic):])
	path := filepath.Join(s.dir, indexFile)
	temp := path + ".new"
	if err := os.WriteFile(temp, append(b, sum[:]...), 0o600); err != nil {
		return err
	}
	return swap(temp, unix.AT_FDCWD, path) // not durable: without it files are read once more
}

// lookup finds files in an index, asked for in the order of a walk.
type lookup struct{ remaining []known }

func (l *lookup) find(path string) (known, bool) {
	for len(l.remaining) > 0 {
		switch c := compare(l.remaining[0].path, path); {
		case c == 0:
			return l.remaining[0], true
		case c > 0:
			return known{}, false
		}
		l.remaining = l.remaining[1:]
	}
	return known{}, false
}
