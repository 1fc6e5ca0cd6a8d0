package snapshot

import (
	"fmt"
	"hash/fnv"
)

// A snapshot's list of files is a tree of objects. Its leaves hold entries, the others the hashes of the
// objects below. Only the content at a place (the path, the hash) decides where an object ends. So two
// lists that differ in a few files share all objects except those with the changed files and those on the
// way to them.
const (
	leafEnd   = 16  // on average one path in so many ends a leaf
	leafMost  = 256 // the most entries of a leaf, if no path ends it
	nodeEnd   = 32  // on average one hash in so many ends an object of hashes
	nodeMost  = 512
	leafLevel = 0
	maxLevel  = 16
)

// writeList stores a list and returns its root.
func writeList(w *packWriter, entries []Entry) (Hash, error) {
	hashes, err := writeLeaves(w, entries)
	for level := byte(1); err == nil && len(hashes) > 1; level++ {
		hashes, err = writeNodes(w, level, hashes)
	}
	if err != nil {
		return Hash{}, err
	}
	return hashes[0], nil
}

func writeLeaves(w *packWriter, entries []Entry) ([]Hash, error) {
	var hashes []Hash
	b, n, previous := []byte{leafLevel}, 0, ""
	for i, e := range entries {
		b = appendEntry(b, e, previous)
		n, previous = n+1, e.Path
		if i < len(entries)-1 && n < leafMost && !endsLeaf(e.Path) {
			continue
		}
		h, err := w.put(b)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h)
		b, n, previous = []byte{leafLevel}, 0, ""
	}
	if len(hashes) == 0 {
		h, err := w.put(b)
		return []Hash{h}, err
	}
	return hashes, nil
}

func endsLeaf(path string) bool {
	f := fnv.New64a()
	_, _ = f.Write([]byte(path))
	return f.Sum64()>>20%leafEnd == 0
}

func writeNodes(w *packWriter, level byte, below []Hash) ([]Hash, error) {
	var hashes []Hash
	b, n := []byte{level}, 0
	for i, h := range below {
		b = append(b, h[:]...)
		n++
		// At least two, so that every level is smaller than the one below.
		if i < len(below)-1 && n < nodeMost && (n < 2 || h[0]%nodeEnd != 0) {
			continue
		}
		put, err := w.put(b)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, put)
		b, n = []byte{level}, 0
	}
	return hashes, nil
}

// readList returns a list's entries, in order. It leaves out objects for which skip returns true; skip may
// be nil.
func (s *Store) readList(root Hash, skip func(Hash) bool) ([]Entry, error) {
	var entries []Entry
	err := s.visit(root, maxLevel, &names{}, func(h Hash, leaf []Entry) (bool, error) {
		if skip != nil && skip(h) {
			return false, nil
		}
		// Check at once: a list that repeats an object could be endless.
		if n := len(entries); n > 0 && len(leaf) > 0 && !before(entries[n-1].Path, leaf[0].Path) {
			return false, fmt.Errorf("%w: the list of files is not in order", ErrDamaged)
		}
		entries = append(entries, leaf...)
		return true, nil
	})
	return entries, err
}

// names counts the bytes of names that are in memory together, and their files.
type names struct{ bytes, files int64 }

// more reports whether another entry's names fit. They always do for a list made from a workspace
// (walk.holds). An object store can hold anything, and names that entries share take no room in it.
func (n *names) more(e Entry) bool {
	n.bytes += int64(len(e.Path) + len(e.Target))
	n.files++
	return n.bytes <= manyNames+meanName*n.files
}

// visit calls see for each object of a list, with its entries if the object is a leaf. It descends below an
// object if see returns true. No object below the root is empty, so entries come soon, however many objects
// there are.
func (s *Store) visit(h Hash, most byte, all *names, see func(Hash, []Entry) (bool, error)) error {
	raw, err := s.packs.read(h)
	if err != nil {
		return err
	}
	if len(raw) == 0 || raw[0] > most || len(raw) == 1 && (most < maxLevel || raw[0] != leafLevel) {
		return fmt.Errorf("%w: object %x is not a list of files", ErrDamaged, h[:6])
	}
	if raw[0] == leafLevel {
		leaf, err := readLeaf(raw[1:], all)
		if err != nil {
			return fmt.Errorf("%w: object %x: %w", ErrDamaged, h[:6], err)
		}
		_, err = see(h, leaf)
		return err
	}
	if below, err := see(h, nil); err != nil || !below {
		return err
	}
	r := reading{b: raw[1:]}
	for len(r.b) > 0 {
		if err := s.visit(r.hash(), raw[0]-1, all, see); err != nil {
			return err
		}
	}
	return r.fail
}

func readLeaf(raw []byte, all *names) ([]Entry, error) {
	r := reading{b: raw}
	var leaf []Entry
	previous := ""
	for len(r.b) > 0 {
		e := r.entry(previous)
		if r.fail == nil {
			r.fail = e.valid()
		}
		if r.fail == nil && (len(leaf) > 0 && !before(previous, e.Path) || len(leaf) == leafMost || !all.more(e)) {
			r.fail = errEncoding
		}
		if r.fail != nil {
			return nil, r.fail
		}
		leaf, previous = append(leaf, e), e.Path
	}
	return leaf, nil
}

// entries returns a snapshot's list of files, in the order of a walk.
func (s *Store) entries(root Hash) ([]Entry, error) { return s.readList(root, nil) }
