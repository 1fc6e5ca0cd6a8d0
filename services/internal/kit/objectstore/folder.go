package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is a Store in a local folder, one file to an object.
type folder struct{ dir string }

func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the operator names it
		return nil, fmt.Errorf("make the object store's folder: %w", err)
	}
	return &folder{dir: dir}, nil
}

// temporary is the prefix of the names of files that are being written. The writer holds a lock on the
// file, so an unlocked one is a leftover.
const temporary = ".new-"

func (f *folder) Put(ctx context.Context, key string, from io.Reader, size int64) error {
	if err := check(key); err != nil {
		return err
	}
	path := filepath.Join(f.dir, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := place(ctx, path, from, size); err != nil {
		f.prune(filepath.Dir(path))
		return fmt.Errorf("object %s: %w", key, err)
	}
	return f.sync(filepath.Dir(key))
}

// place writes a file atomically.
func place(ctx context.Context, path string, from io.Reader, size int64) error {
	temp, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	_ = unix.Flock(int(temp.Fd()), unix.LOCK_EX) // without locks, no file counts as a leftover
	n, err := io.Copy(temp, &reader{ctx: ctx, from: from})
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes, not %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp.Name()))
	}
	return errors.Join(err, temp.Close())
}

// prune removes a folder and its parents, as far as they are empty.
func (f *folder) prune(dir string) {
	for dir != f.dir && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// pruneLeftover removes a file whose writer has ended.
func (f *folder) pruneLeftover(path string) {
	left, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = left.Close() }()
	if unix.Flock(int(left.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && os.Remove(path) == nil {
		f.prune(filepath.Dir(path))
	}
}

// sync makes the names in a folder, and in those that lead to it, durable.
func (f *folder) sync(dir string) error {
	for {
		d, err := os.Open(filepath.Join(f.dir, dir))
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil || dir == "." {
			return err
		}
		dir = filepath.Dir(dir)
	}
}

// reader stops reading with the context.
type reader struct {
	ctx  context.Context //nolint:containedctx // lives as long as one Put
	from io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(b)
}

func (f *folder) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if err := check(key); err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(f.dir, key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return file, err
}

func (f *folder) List(ctx context.Context, prefix string) ([]Object, error) {
	// The folder that contains all objects with the prefix.
	top := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if err := check(top + "x"); err != nil {
		return nil, err
	}
	var all []Object
	err := filepath.WalkDir(filepath.Join(f.dir, top), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if d.IsDir() {
			return nil
		}
		if strings.HasPrefix(d.Name(), temporary) {
			f.pruneLeftover(path)
			return nil
		}
		name, err := filepath.Rel(f.dir, path)
		if err != nil || !strings.HasPrefix(name, prefix) {
			return err
		}
		st, err := d.Info()
		if errors.Is(err, os.ErrNotExist) { // deleted meanwhile
			return nil
		}
		if err == nil {
			all = append(all, Object{Key: name, Size: st.Size()})
		}
		return err
	})
	slices.SortFunc(all, byKey)
	return all, err
}

func (f *folder) Delete(_ context.Context, key string) error {
	if err := check(key); err != nil {
		return err
	}
	path := filepath.Join(f.dir, key)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Remove folders that are empty now.
	f.prune(filepath.Dir(path))
	return nil
}
