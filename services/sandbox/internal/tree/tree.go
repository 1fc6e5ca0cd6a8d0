// Package tree keeps read-only folders that sandboxes show beside their workspaces. A tree is named by the
// digest of the archive that it was made from, so a digest always stands for the same content. The disk is
// the truth: `<dir>/<digest>.<random>` is a whole tree, and `<dir>/.new` holds those that are being made.
//
// A tree that was removed and comes back has another folder. So a sandbox that still shows the removed one
// is not mistaken for one that shows the tree.
package tree

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// ErrFull means that the node has no room for another tree.
var ErrFull = errors.New("the node has no room for another tree")

// Limits of a Store.
type Limits struct {
	Bytes int64         // of all trees together
	Count int           // of trees
	Keep  time.Duration // how long an unused tree stays

	TreeBytes int64 // of the files of one tree
	TreeFiles int64 // files and folders of one tree
}

// Options of a Store.
type Options struct {
	Dir       string // on the file system of the node's data, reached through no link
	Covers    string // see mount.MakeCover
	Limits    Limits
	Leftovers *erase.Later
	Now       func() time.Time
}

// Store holds the trees of a node. It implements box.Trees and is safe for concurrent use.
type Store struct {
	o Options

	mu  sync.Mutex // guards all
	all map[string]*entry
}

// entry is a tree.
type entry struct {
	path  string
	bytes int64
	used  time.Time
}

// recent is how long a tree stays after its last use, whatever room is needed. Sessions with running
// commands use their trees every minute.
const recent = time.Hour

const (
	// drafts holds trees that are being made.
	drafts = ".new"
	// entryBytes is what a file or folder counts besides its content.
	entryBytes = 4096
)

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Open opens the store. It changes nothing that another service may be using.
func Open(o Options) (*Store, error) {
	s := &Store{o: o, all: map[string]*entry{}}
	if err := errors.Join(os.MkdirAll(filepath.Join(o.Dir, drafts), 0o700), os.MkdirAll(o.Covers, 0o700)); err != nil {
		return nil, fmt.Errorf("make the folder of trees: %w", err)
	}
	found, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of trees: %w", err)
	}
	for _, d := range found {
		digest, _, _ := strings.Cut(d.Name(), ".")
		if !digestForm.MatchString(digest) {
			continue
		}
		at := filepath.Join(o.Dir, d.Name())
		if s.all[digest], err = load(at); err != nil {
			return nil, fmt.Errorf("read a tree: %w", err)
		}
	}
	return s, nil
}

// Recover removes what an interrupted run left. The caller has locked the node's data.
func (s *Store) Recover() error {
	left, err := os.ReadDir(filepath.Join(s.o.Dir, drafts))
	for _, d := range left {
		s.o.Leftovers.All(filepath.Join(s.o.Dir, drafts, d.Name()))
	}
	return err
}

// load measures a tree of an earlier run. The time of its folder is that of its last use.
func load(at string) (*entry, error) {
	st, err := os.Stat(at)
	if err != nil {
		return nil, err
	}
	e := &entry{path: at, used: st.ModTime()}
	err = filepath.WalkDir(at, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		e.bytes += entryBytes
		if i, err := d.Info(); err == nil && i.Mode().IsRegular() {
			e.bytes += i.Size()
		}
		return nil
	})
	return e, err
}

// Has reports whether the node has a tree, and counts that as a use.
func (s *Store) Has(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(digest) != nil
}

// use returns a tree that was used now; nil if there is none. mu is held.
func (s *Store) use(digest string) *entry {
	e := s.all[digest]
	if e == nil {
		return nil
	}
	if now := s.o.Now(); now.Sub(e.used) > time.Minute {
		e.used = now
		_ = os.Chtimes(e.path, now, now) // otherwise it looks older after a restart
	}
	return e
}

// Mounts implements box.Trees.
func (s *Store) Mounts(all []box.Tree) ([]box.Mount, error) {
	top := box.Mount{Name: filepath.Base(box.TreesPath), Alias: box.TreesPath, Cover: true}
	mounts := []box.Mount{top}
	s.mu.Lock()
	for _, t := range all {
		e := s.use(t.Digest)
		if e == nil {
			s.mu.Unlock()
			return nil, fmt.Errorf("%w %s, with the digest %s", box.ErrNoTree, t.Name, t.Digest)
		}
		mounts = append(mounts, box.Mount{Name: t.Name, Source: e.path, Alias: box.TreesPath + "/" + t.Name})
	}
	s.mu.Unlock()
	var err error
	if mounts[0].Source, err = mount.MakeCover(s.o.Covers, "", top.Places(mounts)); err != nil {
		return nil, fmt.Errorf("make the places of trees: %w", err)
	}
	return mounts, nil
}

// Tidy implements box.Trees.
func (s *Store) Tidy(used []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, digest := range used {
		s.use(digest)
	}
	s.evict(func(e *entry) bool { return s.o.Now().Sub(e.used) > max(s.o.Limits.Keep, recent) })
}

// evict removes the trees for which a function reports true, least recently used first. mu is held.
func (s *Store) evict(old func(*entry) bool) {
	byUse := make([]string, 0, len(s.all))
	for digest := range s.all {
		byUse = append(byUse, digest)
	}
	slices.SortFunc(byUse, func(a, b string) int { return cmp.Or(s.all[a].used.Compare(s.all[b].used), cmp.Compare(a, b)) })
	for _, digest := range byUse {
		if e := s.all[digest]; old(e) {
			delete(s.all, digest)
			s.remove(e.path)
		}
	}
}

// remove moves a tree away, so that no crash leaves a part of it under its name, and deletes it.
func (s *Store) remove(path string) {
	gone := filepath.Join(s.o.Dir, drafts, "gone-"+rand.Text())
	if os.Rename(path, gone) != nil {
		gone = path
	}
	s.o.Leftovers.All(gone)
}

// full reports why there is no room for a tree with so many bytes. mu is held.
func (s *Store) full(bytes int64) error {
	total := bytes
	for _, e := range s.all {
		total += e.bytes
	}
	switch {
	case len(s.all) >= s.o.Limits.Count:
		return fmt.Errorf("%w: it has %d trees, all in use: try again later, or raise sandbox.trees.count", ErrFull, len(s.all))
	case total > s.o.Limits.Bytes:
		return fmt.Errorf("%w: all of its trees would have %d bytes, and may have %d: try again later, or raise sandbox.trees.bytes", ErrFull, total, s.o.Limits.Bytes)
	}
	return nil
}

// room makes room for a tree. mu is held.
func (s *Store) room(bytes int64) error {
	s.evict(func(e *entry) bool { return s.full(bytes) != nil && s.o.Now().Sub(e.used) > recent })
	return s.full(bytes)
}
