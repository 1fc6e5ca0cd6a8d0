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
)

// folder is a Store in a local folder, one file to an object.
type folder struct{ dir string }

func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the operator names it
		return nil, fmt.Errorf("make the object store's folder: %w", err)
	}
	return &folder{dir: dir}, nil
}

// temporary begins the names of files that are being written.
const temporary = ".new-"

func (f *folder) Put(ctx context.Context, key string, from io.Reader, size int64) error {
	if err := check(key); err != nil {
		return err
	}
	path := filepath.Join(f.dir, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	n, err := io.Copy(temp, &reader{ctx: ctx, from: from})
	if err == nil && n != size {
		err = fmt.Errorf("object %s has %d bytes, not %d: %w", key, n, size, io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return f.sync(filepath.Dir(key))
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

func (f *folder) List(ctx context.Context, prefix string) ([]string, error) {
	// The folder in which everything with the prefix lies.
	top := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if err := check(top + "x"); err != nil {
		return nil, err
	}
	var keys []string
	err := filepath.WalkDir(filepath.Join(f.dir, top), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if d.IsDir() || strings.HasPrefix(d.Name(), temporary) {
			return nil
		}
		name, err := filepath.Rel(f.dir, path)
		if strings.HasPrefix(name, prefix) {
			keys = append(keys, name)
		}
		return err
	})
	slices.Sort(keys)
	return keys, err
}

func (f *folder) Delete(_ context.Context, key string) error {
	if err := check(key); err != nil {
		return err
	}
	path := filepath.Join(f.dir, key)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Folders that are empty by now go, too; one that is not stays.
	dir := filepath.Dir(path)
	for dir != f.dir && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
	return nil
}
