package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// CopyTo makes another store that holds one of this store's snapshots. Packs are hard links to the same
// files if the file system allows it: they never change. The caller must have exclusive use of the other
// folder.
func (s *Store) CopyTo(ctx context.Context, dir, id string) error {
	r, err := s.Get(id)
	if err != nil {
		return err
	}
	for _, d := range []string{packsDir, recordsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for _, k := range s.packs.list() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := link(k.path, filepath.Join(dir, packsDir, filepath.Base(k.path))); err != nil {
			return err
		}
	}
	if err := durable.SyncDir(filepath.Join(dir, packsDir)); err != nil {
		return err
	}
	other, err := Open(dir)
	if err != nil {
		return err
	}
	r.Parent, r.Seq, r.Clones = "", 1, []string{} // clones do not belong to the holder of the copy
	err = other.save(r, durable.WriteFile)
	if err == nil {
		err = other.Compact()
	}
	return errors.Join(err, other.Close())
}

func (p *packs) list() []*pack {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return append([]*pack(nil), p.all...)
}

// link makes a hard link of a file, or a copy if that fails.
func link(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, os.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	temp, err := os.CreateTemp(filepath.Dir(to), "new-")
	if err != nil {
		return err
	}
	_, err = io.Copy(temp, in)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return os.Rename(temp.Name(), to)
}
