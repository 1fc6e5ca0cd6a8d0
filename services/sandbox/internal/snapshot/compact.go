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
	// smallPack is a pack that is worth merging with others, once there are many.
	smallPack  = 1 << 20
	manySmalls = 64
)

// Delete removes snapshots, and then what only they held. One that is not there is
// removed already. Nobody else may use the store.
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
	// The objects must not go before the names that lead to them.
	if err := durable.SyncDir(filepath.Join(s.dir, recordsDir)); err != nil {
		return err
	}
	return s.Compact()
}

// Compact removes objects that no snapshot holds, from packs of which at least half
// is of no use any more, and merges small packs when there are many. Nobody else
// may use the store. Interrupted, it has removed nothing that is held.
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
	return s.packs.remove(old)
}

// live returns every object that a snapshot holds.
func (s *Store) live() (map[Hash]bool, error) {
	all, err := s.List(-1, 0)
	if err != nil {
		return nil, err
	}
	live := map[Hash]bool{}
	for _, r := range all {
		entries, err := s.readList(r.Root, func(h Hash) bool {
			seen := live[h]
			live[h] = true
			return seen
		})
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", r.ID, err)
		}
		for _, e := range entries {
			if err := s.mark(e, live); err != nil {
				return nil, fmt.Errorf("snapshot %s: %w", r.ID, err)
			}
		}
	}
	return live, nil
}

// mark notes the objects of an entry.
func (s *Store) mark(e Entry, live map[Hash]bool) error {
	if e.Kind != Regular || live[e.Hash] {
		return nil
	}
	live[e.Hash] = true
	if e.Size <= chunkSize {
		return nil
	}
	chunks, err := s.chunks(e)
	if err != nil {
		return err
	}
	for _, h := range chunks {
		live[h] = true
	}
	return nil
}

// wasteful returns the packs to get rid of: those of which at least half is of no
// use, and the small ones when they are many.
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

// rewrite stores what is of use in packs that are to go in new ones, as it is.
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

// remove removes packs. What was of use in them lies in others.
func (p *packs) remove(old []*pack) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	p.all = slices.DeleteFunc(p.all, func(k *pack) bool { return slices.Contains(old, k) })
	for _, k := range old {
		k.once.Do(func() { k.err = os.ErrClosed })
		if k.file != nil {
			faults = append(faults, k.file.Close())
		}
		if !slices.ContainsFunc(p.all, func(o *pack) bool { return o.path == k.path }) { // the same again
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
