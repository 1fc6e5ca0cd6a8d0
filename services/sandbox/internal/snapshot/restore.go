package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/forks"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Restored is what a restore did.
type Restored struct {
	Written int64 // files, links and directories that were made or replaced
	Removed int64
	Changed int64 // whose permissions or times were changed
}

// Restore returns a workspace to an earlier state. It touches only what differs, replaces files atomically,
// and leaves FIFOs, sockets and devices if their directory stays. It may be repeated, also after an
// interruption.
func (s *Store) Restore(ctx context.Context, t *Tree, id string) (Restored, error) {
	r, err := s.Get(id)
	if err != nil {
		return Restored{}, err
	}
	want, have, err := s.compare(ctx, t, r.Root)
	if err != nil {
		return Restored{}, err
	}
	want, have.entries = t.renameCovered(want), t.without(have.entries)
	re := &restore{store: s, tree: t, touched: map[string]bool{}, drafts: map[string]string{}, unlocked: map[string]bool{}, stats: map[string]unix.Stat_t{}}
	if err := re.run(ctx, have, want); err != nil {
		return re.done, err
	}
	return re.done, s.saveIndex(re.index(have.index, want))
}

// compare lists the wanted and the present entries. Of the files that the index does not know, it reads
// only those that may match.
func (s *Store) compare(ctx context.Context, t *Tree, root Hash) (want []Entry, have *state, err error) {
	var w *walk
	both, inner := errgroup.WithContext(ctx)
	both.Go(func() (err error) { want, err = s.entries(root); return err })
	both.Go(func() (err error) { w, err = t.scan(inner); return err })
	if err := both.Wait(); err != nil {
		return nil, nil, err
	}
	rest := want
	have, err = s.readContents(ctx, t, w, justHash, func(f *found) bool {
		for len(rest) > 0 && before(rest[0].Path, f.Path) {
			rest = rest[1:]
		}
		return len(rest) > 0 && rest[0].Path == f.Path && rest[0].Kind == Regular && rest[0].Size == f.Size
	})
	return want, have, err
}

// index returns the new index after a restore. A file put in place with its old time is trusted at once: a
// write sets another time. A file that was kept and given its old time keeps its earlier index entry, so
// that it is read again.
func (re *restore) index(was []known, want []Entry) []known {
	trusted := time.Now().Add(-settling).UnixNano()
	l := lookup{remaining: was}
	var index []known
	for _, e := range want {
		if e.Kind != Regular {
			continue
		}
		st, changed := re.stats[e.Path]
		k, ok := l.find(e.Path)
		switch {
		case changed:
			doubted := ok && k.inode == st.Ino && k.ctime == unsteady // and kept as it was
			k = known{path: e.Path, inode: st.Ino, ctime: nanoseconds(st.Ctim), mtime: nanoseconds(st.Mtim), size: st.Size, sparse: e.Sparse, hash: e.Hash}
			if doubted || st.Size != e.Size || k.mtime != e.Mtime || k.mtime >= trusted {
				k.ctime = unsteady
			}
		case !ok:
			continue
		}
		index = append(index, k)
	}
	return index
}

// restore is one restore in progress.
type restore struct {
	store   *Store
	tree    *Tree
	drafts  map[string]string // files that are written but not yet in place, by path
	touched map[string]bool   // directories whose own time has changed
	// unlocked are the directories to which the service gave itself rights.
	unlocked map[string]bool
	stats    map[string]unix.Stat_t // of regular files that were written, or only had their permissions set
	names    int64                  // number of names to make
	written  atomic.Int64           // bytes of drafts
	done     Restored

	dirName string   // of the directory used last
	dir     *os.File // nil for none
}

// run first writes the missing and changed files beside the workspace. Only then it touches the workspace:
// it removes surplus files, puts files in place, and sets the permissions and times of directories.
func (re *restore) run(ctx context.Context, have *state, want []Entry) error {
	defer re.leave()
	present, surplus := match(have, want)
	defer re.discard()
	if err := re.prepare(ctx, want, present); err != nil {
		return err
	}
	re.awaitPrograms(want)
	return asChanged(re.touch(ctx, have.entries, surplus, want, present))
}

// awaitPrograms waits until the written programs can be executed, because a command may wait for one. It
// skips programs that the service may not read. After one that stays busy it waits for no other: the sandbox
// may be frozen meanwhile.
func (re *restore) awaitPrograms(want []Entry) {
	for _, e := range want {
		draft, written := re.drafts[e.Path]
		if !written || e.Mode&0o111 == 0 {
			continue
		}
		f, err := os.Open(draft)
		if err != nil {
			continue
		}
		free := forks.Await(f)
		_ = f.Close()
		if !free {
			return
		}
	}
}

// touch changes the workspace.
func (re *restore) touch(ctx context.Context, have, surplus, want []Entry, present []*Entry) error {
	if err := re.remove(have, surplus); err != nil {
		return err
	}
	for i, e := range want {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := re.make(e, present[i]); err != nil {
			return fmt.Errorf("restore %.200s: %w", e.Path, err)
		}
	}
	for i := len(want) - 1; i >= 0; i-- {
		if err := re.finish(want[i], present[i]); err != nil {
			return fmt.Errorf("restore %.200s: %w", want[i].Path, err)
		}
	}
	return nil
}

// match returns for each wanted entry the present one, if it is of the same kind and can be changed into
// it. It also returns the surplus entries.
func match(now *state, want []Entry) (present []*Entry, surplus []Entry) {
	have := now.entries
	present = make([]*Entry, len(want))
	i := 0
	for h := range have {
		for i < len(want) && before(want[i].Path, have[h].Path) {
			i++
		}
		if i == len(want) || want[i].Path != have[h].Path || want[i].Kind != have[h].Kind {
			surplus = append(surplus, have[h])
			continue
		}
		// The file's other names would get its permissions and time as well, so it is written anew.
		if !now.linked[have[h].Path] || have[h].Mode == want[i].Mode && have[h].Mtime == want[i].Mtime {
			present[i] = &have[h]
		}
	}
	return present, surplus
}

// parent opens the directory of a path for a change.
func (re *restore) parent(name string) (dir int, last string, err error) {
	where, last := filepath.Split(name)
	where = filepath.Clean(where)
	re.touched[where] = true
	if re.dir == nil || re.dirName != where {
		re.leave()
		f, err := re.tree.open(where, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return -1, "", err
		}
		re.dir, re.dirName = f, where
	}
	return int(re.dir.Fd()), last, nil
}

func (re *restore) leave() {
	if re.dir != nil {
		_ = re.dir.Close()
		re.dir, re.dirName = nil, ""
	}
}

// make makes a wanted entry unless it is present.
func (re *restore) make(e Entry, present *Entry) error {
	if e.kept(present) {
		return nil // its permissions and its time are set at the end
	}
	dir, last, err := re.parent(e.Path)
	if err != nil {
		return err
	}
	re.done.Written++
	switch e.Kind {
	case Directory:
		return re.directory(e, dir, last)
	case Symlink:
		return re.symlink(e, dir, last)
	default:
		return re.regular(e, dir, last)
	}
}

// unlock gives the service rights to directories that their owner closed. finish closes them again.
func (re *restore) unlock(have []Entry) error {
	for _, e := range have {
		if e.Kind != Directory || e.Mode&0o700 == 0o700 {
			continue
		}
		dir, last, err := re.parentOf(e.Path)
		if err == nil {
			re.unlocked[e.Path], err = rights.Add(dir, last, 0o700)
		}
		if err != nil {
			return fmt.Errorf("open %.200s: %w", e.Path, err)
		}
	}
	return nil
}

// kept reports whether the present file needs no new contents.
func (e Entry) kept(present *Entry) bool {
	switch {
	case present == nil:
		return false
	case e.Kind == Directory:
		return true
	case e.Kind == Regular:
		return present.Hash == e.Hash && present.Size == e.Size
	}
	return present.Target == e.Target
}

func (re *restore) directory(e Entry, dir int, last string) error {
	err := unix.Mkdirat(dir, last, 0o700)
	if errors.Is(err, unix.EEXIST) {
		if err := clearPlace(dir, last); err != nil {
			return err
		}
		err = unix.Mkdirat(dir, last, 0o700)
	}
	if err != nil {
		return err
	}
	re.touched[e.Path] = true
	return re.own(dir, last)
}

func (re *restore) symlink(e Entry, dir int, last string) error {
	if err := clearPlace(dir, last); err != nil {
		return err
	}
	if err := unix.Symlinkat(e.Target, dir, last); err != nil {
		return err
	}
	return re.own(dir, last)
}

// own gives a new file to the workspace's user. It works by name and follows no link: if a command put a
// link there meanwhile, the link changes owner.
func (re *restore) own(dir int, last string) error {
	if re.tree.owner.UID < 0 {
		return nil
	}
	return unix.Fchownat(dir, last, re.tree.owner.UID, re.tree.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

// regular puts a prepared file in place atomically.
func (re *restore) regular(e Entry, dir int, last string) error {
	if err := swap(re.drafts[e.Path], dir, last); err != nil {
		return err
	}
	delete(re.drafts, e.Path)
	var st unix.Stat_t
	err := unix.Fstatat(dir, last, &st, unix.AT_SYMLINK_NOFOLLOW)
	re.stats[e.Path] = st
	return err
}

// swap puts a file in place and removes the old one. It exchanges them first: a rename over a file would
// make ext4 write the new one to disk at once.
func swap(file string, dir int, last string) error {
	err := unix.Renameat2(unix.AT_FDCWD, file, dir, last, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		return unix.Renameat2(unix.AT_FDCWD, file, dir, last, 0)
	}
	if err != nil {
		return err
	}
	return clearPlace(unix.AT_FDCWD, file)
}

// parentOf is parent for a change that keeps the directory's own time.
func (re *restore) parentOf(name string) (int, string, error) {
	where := filepath.Dir(name)
	was := re.touched[where]
	dir, last, err := re.parent(name)
	if !was {
		delete(re.touched, where)
	}
	return dir, last, err
}
