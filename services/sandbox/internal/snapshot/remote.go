package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// Pushed is what a push did.
type Pushed struct {
	Packs     int64 // that were missing
	Bytes     int64 // of those packs
	Snapshots int64 // that are there now
}

// Push copies the store in a folder to an object store, under a prefix that ends with a slash. It sends
// objects that are missing or have another size, then the snapshots' names, then deletes unused objects. No
// other Push may use the prefix. Push calls hold to keep snapshots from being removed. It calls the
// returned release before it sends anything, because that may take long. Snapshots made meanwhile are left
// to the next push.
func Push(ctx context.Context, dir string, hold func() (release func()), to objectstore.Store, prefix string) (Pushed, error) {
	there, err := remote(ctx, to, prefix)
	if err != nil {
		return Pushed{}, err
	}
	release := hold()
	l, err := gather(dir, prefix, there)
	release()
	if err != nil {
		return Pushed{}, errors.Join(err, l.close())
	}
	did, err := l.send(ctx, to)
	if err == nil {
		err = sweep(ctx, to, there, l.listed)
	}
	return did, errors.Join(err, l.close())
}

// load is the content of a store at a moment. Missing files are open, so that they can be sent even if they
// are removed meanwhile.
type load struct {
	packs   []item
	names   []item
	listed  map[string]bool // the keys of all its files
	records int64
}

// item is a file to send.
type item struct {
	key  string
	file *os.File
	size int64
}

// gather opens the missing files. It lists names before packs: a snapshot is named after all its objects
// are stored.
func gather(dir, prefix string, there map[string]int64) (*load, error) {
	l := &load{listed: map[string]bool{}}
	all, err := In(dir).records()
	if errors.Is(err, os.ErrNotExist) {
		return l, nil // no snapshot was ever made
	}
	if err != nil {
		return l, err
	}
	l.records = int64(len(all))
	add := func(to *[]item, kind, name string) error {
		key := prefix + kind + "/" + name
		l.listed[key] = true
		f, err := os.Open(filepath.Join(dir, kind, name))
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if size, ok := there[key]; ok && size == st.Size() {
			return f.Close()
		}
		*to = append(*to, item{key: key, file: f, size: st.Size()})
		return nil
	}
	for _, r := range all {
		if err := add(&l.names, recordsDir, r.file); err != nil {
			return l, err
		}
	}
	if err := intact(dir); err != nil {
		return l, err
	}
	packs, err := os.ReadDir(filepath.Join(dir, packsDir))
	if err != nil {
		return l, err
	}
	for _, k := range packs {
		if !strings.HasSuffix(k.Name(), packSuffix) {
			continue // it is being written
		}
		if err := add(&l.packs, packsDir, k.Name()); err != nil {
			return l, err
		}
	}
	return l, nil
}

// intact refuses a store with a damaged pack: the remote copy may be better.
func intact(dir string) error {
	p, err := openPacks(filepath.Join(dir, packsDir))
	if err != nil {
		return err
	}
	return errors.Join(p.whole(), p.close())
}

// send sends the missing files, names last.
func (l *load) send(ctx context.Context, to objectstore.Store) (Pushed, error) {
	var did Pushed
	for _, k := range l.packs {
		if err := to.Put(ctx, k.key, k.file, k.size); err != nil {
			return did, err
		}
		did.Packs++
		did.Bytes += k.size
	}
	for _, n := range l.names {
		if err := to.Put(ctx, n.key, n.file, n.size); err != nil {
			return did, err
		}
	}
	did.Snapshots = l.records
	return did, nil
}

func (l *load) close() error {
	var faults []error
	for _, i := range slices.Concat(l.packs, l.names) {
		faults = append(faults, i.file.Close())
	}
	return errors.Join(faults...)
}

// remote returns the sizes of the objects under a prefix, by key.
func remote(ctx context.Context, in objectstore.Store, prefix string) (map[string]int64, error) {
	all, err := in.List(ctx, prefix)
	there := make(map[string]int64, len(all))
	for _, o := range all {
		there[o.Key] = o.Size
	}
	return there, err
}

// sweep removes unwanted objects: names before the packs that they lead to.
func sweep(ctx context.Context, in objectstore.Store, there map[string]int64, wanted map[string]bool) error {
	for _, kind := range []string{recordsDir, packsDir} {
		for key := range there {
			if wanted[key] || path.Base(path.Dir(key)) != kind {
				continue
			}
			if err := in.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bounds are the limits of a store that is pulled.
type Bounds struct {
	Snapshots int
	Bytes     int64 // on disk
}

// Pull makes a store in a folder from an object store, under a prefix that ends with a slash. The caller
// must have exclusive use of the folder, which is unusable after an error. It returns ErrNotFound if the
// prefix has no snapshot, and ErrTooLarge if it exceeds most.
func Pull(ctx context.Context, from objectstore.Store, prefix, dir string, most Bounds) error {
	there, err := remote(ctx, from, prefix)
	if err != nil {
		return err
	}
	names := map[string][]string{}
	for key := range there {
		kind, name := path.Split(strings.TrimPrefix(key, prefix))
		names[kind] = append(names[kind], name)
	}
	if len(names[recordsDir+"/"]) == 0 {
		return fmt.Errorf("%w in the object store", ErrNotFound)
	}
	if err := most.check(len(names[recordsDir+"/"]), there); err != nil {
		return err
	}
	for _, kind := range []string{packsDir, recordsDir} {
		folder := filepath.Join(dir, kind)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		slices.Sort(names[kind+"/"])
		for _, name := range names[kind+"/"] {
			key := prefix + kind + "/" + name
			if err := pull(ctx, from, key, there[key], filepath.Join(folder, name)); err != nil {
				return err
			}
		}
		if err := durable.SyncDir(folder); err != nil {
			return err
		}
	}
	return whole(dir)
}

// check refuses a store that exceeds the limits. Each file takes at least one block.
func (b Bounds) check(snapshots int, there map[string]int64) error {
	var bytes int64
	for _, size := range there {
		if bytes += max(size, block); bytes > b.Bytes || bytes < 0 {
			return fmt.Errorf("%w: the object store has more than %d bytes", ErrTooLarge, b.Bytes)
		}
	}
	if snapshots > b.Snapshots {
		return fmt.Errorf("%w: the object store has %d, more than %d", ErrTooLarge, snapshots, b.Snapshots)
	}
	return nil
}

// pull fetches one file, of at most the listed size. The last part of its name comes from the store's keys,
// which cannot lead elsewhere.
func pull(ctx context.Context, from objectstore.Store, key string, size int64, to string) error {
	in, err := from.Get(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(in, size+1))
	if err == nil && n > size {
		err = fmt.Errorf("%w: object %s has more bytes than were listed", ErrTooLarge, key)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// whole checks that a fetched store has every object that its snapshots need, and drops other damaged
// packs. Contents of objects are checked when they are read.
func whole(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	live, err := s.live()
	for h := range live {
		if err == nil && !s.packs.has(h) {
			err = s.packs.missing(h)
		}
	}
	if err == nil {
		err = s.packs.remove(s.packs.useless(live)) // else the next push would fail
	}
	return errors.Join(err, s.Close())
}
