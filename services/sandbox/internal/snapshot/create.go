package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// settling is the age below which the index does not trust a file's change: a later change could have the
// same time.
const settling = 50 * time.Millisecond

// Request describes the snapshot to make.
type Request struct {
	ID          string
	Parent      string
	Description string
	Clones      []string // the value of the snapshot's field Clones
	Now         time.Time
	// Read is called when the workspace has been read, before the data is durable. It may be nil.
	Read func()
	// Intend is called once, before the store changes. record is nil if the snapshot will be durable. Otherwise it
	// adds no contents, and a crash of the machine can lose its name: Recover names it again with the record. Intend
	// may be nil.
	Intend func(record []byte) error
}

// Create makes a snapshot of a workspace, or returns the existing one of that id. No other change of the
// store may run meanwhile.
func (s *Store) Create(ctx context.Context, t *Tree, r Request) (Snapshot, error) {
	if !validID.MatchString(r.ID) {
		return Snapshot{}, fmt.Errorf("snapshot id %.80q is not valid", r.ID)
	}
	if made, err := s.Get(r.ID); !errors.Is(err, ErrNotFound) {
		return made, err
	}
	if err := s.tidy(); err != nil {
		return Snapshot{}, err
	}
	seq, err := s.nextSeq()
	if err != nil {
		return Snapshot{}, err
	}
	out := s.packs.writer()
	defer out.discard()
	state, err := s.look(ctx, t, out.put)
	if err != nil {
		return Snapshot{}, err
	}
	if r.Read != nil {
		r.Read()
	}
	made := Snapshot{ID: r.ID, Seq: seq, Parent: r.Parent, Description: r.Description, Created: r.Now.UTC(), Clones: r.Clones}
	made.count(state)
	if made.Root, err = writeList(out, state.entries); err != nil {
		return Snapshot{}, err
	}
	if out.empty() {
		err = s.name(made, r.Intend)
	} else {
		made, err = s.add(made, out, r.Intend)
	}
	if err != nil {
		return Snapshot{}, err
	}
	if err := s.dropDamaged(); err != nil || !state.reread {
		return made, err
	}
	return made, s.saveIndex(state.index)
}

// add names a snapshot with new contents.
func (s *Store) add(made Snapshot, out *packWriter, intend func([]byte) error) (Snapshot, error) {
	if intend != nil {
		if err := intend(nil); err != nil {
			return Snapshot{}, err
		}
	}
	if err := out.finish(); err != nil {
		return Snapshot{}, err
	}
	made.Added = out.added
	return made, s.save(made, durable.WriteFile)
}

// Prepare stores a workspace's contents without naming them, so that the next Create only stores later
// changes. No other change of the store may run meanwhile.
func (s *Store) Prepare(ctx context.Context, t *Tree) error {
	out := s.packs.writer()
	defer out.discard()
	state, err := s.look(ctx, t, out.put)
	if err != nil {
		return err
	}
	if err := out.finish(); err != nil {
		return err
	}
	return s.saveIndex(state.index)
}

// tidy removes the remains of an interrupted change of the store.
func (s *Store) tidy() error { return Tidy(s.dir) }

// Tidy removes the remains of an interrupted change of a store, if it exists. The store must not be in use.
func Tidy(store string) error {
	for dir, old := range map[string]func(string) bool{
		packsDir:   func(n string) bool { return strings.HasPrefix(n, "new-") },
		recordsDir: func(n string) bool { return strings.HasSuffix(n, ".new") },
	} {
		entries, err := os.ReadDir(filepath.Join(store, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if old(e.Name()) {
				if err := os.Remove(filepath.Join(store, dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s Names) nextSeq() (int64, error) {
	all, err := s.records()
	if err != nil || len(all) == 0 {
		return 1, err
	}
	return all[0].seq + 1, nil
}

func (r *Snapshot) count(state *state) {
	for _, e := range state.entries {
		switch e.Kind {
		case Regular:
			r.Files++
			r.Bytes += e.Size
		case Directory:
			r.Directories++
		case Symlink:
			r.Links++
		}
	}
	r.SkippedCount = int64(len(state.skipped))
	r.Skipped = slices.Clone(state.skipped[:min(len(state.skipped), maxSkipped)])
	for i, l := range r.Skipped {
		r.Skipped[i].Path = filename.Encode(l.Path[:min(len(l.Path), maxSkippedPath)])
	}
}

// state is the state of a workspace at a moment.
type state struct {
	entries []Entry
	index   []known // of its regular files
	reread  bool    // the index differs from the stored one
	skipped []Skipped
	linked  map[string]bool // its regular files that have other names too
}

// look lists a workspace. It does not read files that the index knows; the others go into the sink.
func (s *Store) look(ctx context.Context, t *Tree, to sink) (*state, error) {
	w, err := t.scan(ctx)
	if err != nil {
		return nil, err
	}
	return s.readContents(ctx, t, w, to, func(*found) bool { return true })
}

// readContents completes a walk with the contents of its files. Files that are not worth it keep a zero hash, which
// no object has.
func (s *Store) readContents(ctx context.Context, t *Tree, w *walk, to sink, worth func(*found) bool) (*state, error) {
	l := lookup{remaining: s.loadIndex()}
	known := len(l.remaining)
	var todo []*found
	for i := range w.files {
		f := &w.files[i]
		if f.Kind != Regular {
			continue
		}
		if k, ok := l.find(f.Path); ok && k.matches(&f.st) && s.hasContents(k) {
			f.Hash, f.Sparse = k.hash, k.sparse
			continue
		}
		if worth(f) {
			todo = append(todo, f)
		}
	}
	skipped, err := t.readAll(ctx, todo, to)
	if err != nil {
		return nil, err
	}
	now := w.state(skipped)
	now.reread = len(todo) > 0 || len(now.index) != known
	return now, nil
}

// matches reports whether a file is unchanged.
func (k known) matches(st *unix.Stat_t) bool {
	return k.inode == st.Ino && k.size == st.Size && k.ctime == nanoseconds(st.Ctim) && k.mtime == nanoseconds(st.Mtim)
}

// hasContents reports whether all contents of a file are in the store. A stored list of chunks is not enough:
// chunks in other packs can be gone.
func (s *Store) hasContents(k known) bool {
	objects, err := s.objects(Entry{Path: k.path, Size: k.size, Hash: k.hash})
	return err == nil && !slices.ContainsFunc(objects, func(h Hash) bool { return !s.packs.has(h) })
}

// unsteady marks files in the index that must always be read again.
const unsteady = -1

// readAll reads files, several at a time. A file that vanishes, or is no longer a regular file, gets no
// kind.
func (t *Tree) readAll(ctx context.Context, todo []*found, to sink) ([]Skipped, error) {
	var mu sync.Mutex
	var skipped []Skipped
	leave := func(f *found, why string) {
		mu.Lock()
		defer mu.Unlock()
		skipped = append(skipped, Skipped{Path: f.Path, Why: why})
	}
	g, ctx := errgroup.WithContext(ctx)
	queue := make(chan *found)
	for range min(runtime.GOMAXPROCS(0), 8, len(todo)) {
		g.Go(func() error {
			buffer := make([]byte, chunkSize)
			for f := range queue {
				if err := t.read(f, to, buffer, leave); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(queue)
		for _, f := range todo {
			select {
			case queue <- f:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return skipped, g.Wait()
}

// read reads one file of a walk.
func (t *Tree) read(f *found, to sink, buffer []byte, leave func(*found, string)) error {
	now, err := t.contents(&f.Entry, to, buffer)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		f.Kind = 0 // it vanished
		return nil
	case errors.Is(err, errNotRegular):
		f.Kind = 0
		leave(f, "it was replaced while the snapshot was made")
		return nil
	case err != nil:
		return fmt.Errorf("read %.200s: %w", f.Path, err)
	}
	f.st = now.st
	if !now.steady || !now.changesVisible {
		f.st.Ctim = unix.NsecToTimespec(unsteady)
	}
	if !now.steady {
		leave(f, "it was written to while it was read: the kept copy may mix old and new contents")
	}
	return nil
}

// state summarizes a walk. Files whose last change is too young are read again the next time.
func (w *walk) state(skipped []Skipped) *state {
	s := &state{
		entries: make([]Entry, 0, len(w.files)), index: make([]known, 0, len(w.files)),
		skipped: append(w.skipped, skipped...), linked: map[string]bool{},
	}
	for i := range w.files {
		f := &w.files[i]
		if f.Kind == 0 {
			continue
		}
		s.entries = append(s.entries, f.Entry)
		if f.Kind != Regular {
			continue
		}
		k := known{
			path: f.Path, inode: f.st.Ino, ctime: nanoseconds(f.st.Ctim), mtime: nanoseconds(f.st.Mtim), size: f.Size, sparse: f.Sparse, hash: f.Hash,
		}
		if k.ctime >= w.trusted {
			k.ctime = unsteady
		}
		s.index = append(s.index, k)
		if f.st.Nlink > 1 {
			s.linked[f.Path] = true
		}
	}
	return s
}
