package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

const (
	// smallPack is the size below which packs are merged, once there are many.
	smallPack  = 1 << 20
	manySmalls = 64
)

// Delete removes snapshots, and then the objects that only they held. An unknown id counts as removed. The
// caller must have exclusive use of the store.
func (s *Store) Delete(ids ...string) error {
	all, err := s.records()
	if err != nil {
		return err
	}
	for _, r := range all {
		if !slices.Contains(ids, r.id) {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, recordsDir, r.file)); err != nil {
			return err
		}
	}
	// Names must be removed durably before the objects that they lead to.
	if err := durable.SyncDir(filepath.Join(s.dir, recordsDir)); err != nil {
		return err
	}
	return s.Compact()
}

// Compact removes objects that no snapshot holds, from packs of which at least half is unused. It also
// merges small packs if there are many. The caller must have exclusive use of the store. An interrupted
// Compact removes nothing that is held.
func (s *Store) Compact() error {
	if err := s.tidy(); err != nil {
		return err
	}
	live, err := s.live()
	if err != nil {
		return err
	}
	useful := map[*pack]int64{}
	for h, at := range s.packs.objects {
		if live[h] {
			useful[at.pack] += int64(at.stored) + footerItem
		}
	}
	old := s.packs.wasteful(useful)
	if err := s.packs.rewrite(old, live); err != nil {
		return err
	}
	return s.packs.remove(append(old, s.packs.useless(live)...))
}

// reach is what the snapshots lead to.
//
// An object has no kind of its own. The same bytes can be a file's contents, a large file's list of chunks
// and a list of files, and commands can cause that. The reference to an object determines its kind. So an
// object is skipped only if it was followed as that kind already, never because it is live.
type reach struct {
	live   map[Hash]bool // the result; no decision depends on it
	lists  map[Hash]bool // lists of files already followed
	chunks map[Hash]bool // lists of chunks already followed
}

// live returns every object that a snapshot holds.
func (s *Store) live() (map[Hash]bool, error) {
	all, err := s.List(-1, 0)
	if err != nil {
		return nil, err
	}
	to := reach{live: map[Hash]bool{}, lists: map[Hash]bool{}, chunks: map[Hash]bool{}}
	for _, r := range all {
		if err := s.follow(r.Root, to); err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", r.ID, err)
		}
	}
	return to.live, nil
}

// follow records the objects of a list of files, and of the files.
func (s *Store) follow(root Hash, to reach) error {
	entries, err := s.readList(root, func(h Hash) bool {
		to.live[h] = true
		return !first(to.lists, h)
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Kind != Regular || e.Size > chunkSize && !first(to.chunks, e.Hash) {
			continue
		}
		objects, err := s.objects(e)
		if err != nil {
			return err
		}
		for _, h := range objects {
			to.live[h] = true
		}
	}
	return nil
}

// first reports whether a hash was not seen before.
func first(seen map[Hash]bool, h Hash) bool {
	if seen[h] {
		return false
	}
	seen[h] = true
	return true
}

// wasteful returns the packs to remove: those of which at least half is unused, and the small ones if there
// are many.
func (p *packs) wasteful(useful map[*pack]int64) []*pack {
	var old, small []*pack
	for _, k := range p.all {
		switch {
		case useful[k] <= k.size/2:
			old = append(old, k)
		case k.size < smallPack:
			small = append(small, k)
		}
	}
	if len(small) >= manySmalls {
		old = append(old, small...)
	}
	return old
}

// dropDamaged removes damaged packs whose needed objects have all been stored again.
func (s *Store) dropDamaged() error {
	if s.packs.whole() == nil {
		return nil
	}
	live, err := s.live()
	if errors.Is(err, ErrDamaged) { // a list of files is missing
		return nil
	}
	if err != nil {
		return err
	}
	return s.packs.remove(s.packs.useless(live))
}

// useless returns the damaged packs, unless a needed object may be in them.
func (p *packs) useless(live map[Hash]bool) []*pack {
	for h := range live {
		if !p.has(h) {
			return nil
		}
	}
	return slices.Clone(p.damaged)
}

// rewrite copies the live objects of old packs into new ones, unchanged.
func (p *packs) rewrite(old []*pack, live map[Hash]bool) error {
	w := p.writer()
	defer w.discard()
	for h, at := range p.objects {
		if !live[h] || !slices.Contains(old, at.pack) {
			continue
		}
		b, _, err := p.stored(h)
		if err != nil {
			return err
		}
		if err := w.append(h, b, int(at.raw)); err != nil {
			return err
		}
	}
	return w.finish()
}

// remove removes packs whose live objects are in other packs.
func (p *packs) remove(old []*pack) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	gone := func(k *pack) bool { return slices.Contains(old, k) }
	p.all, p.damaged = slices.DeleteFunc(p.all, gone), slices.DeleteFunc(p.damaged, gone)
	for _, k := range old {
		k.once.Do(func() { k.err = os.ErrClosed })
		if k.file != nil {
			faults = append(faults, k.file.Close())
		}
		if !slices.ContainsFunc(p.all, func(o *pack) bool { return o.path == k.path }) { // an identical new pack has that path
			faults = append(faults, os.Remove(k.path))
		}
	}
	for h, at := range p.objects {
		if slices.Contains(old, at.pack) {
			delete(p.objects, h)
		}
	}
	return errors.Join(append(faults, durable.SyncDir(p.dir))...)
}
