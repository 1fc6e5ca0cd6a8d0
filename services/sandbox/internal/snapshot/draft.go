package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// writers is how many files are written at a time.
const writers = 4

// syncedAlone is the most files that are synced one by one. For more files, a sync of the file system is
// quicker, despite the unrelated data that it writes.
const syncedAlone = 256

// prepare writes regular files, several at a time, and syncs them. Otherwise a crash of the machine could
// lose both the replaced files and the new contents.
func (re *restore) prepare(ctx context.Context, want []Entry, present []*Entry) error {
	files := 0
	for i, e := range want {
		if present[i] == nil {
			re.names++
		}
		if e.Kind == Regular && !e.kept(present[i]) {
			files++
		}
	}
	if err := re.reserve(0); err != nil {
		return err
	}
	alone := files <= syncedAlone
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i, e := range want {
		if e.Kind != Regular || e.kept(present[i]) {
			continue
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			draft, err := re.draft(e, alone)
			if err != nil {
				return fmt.Errorf("restore %.200s: %w", e.Path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			re.drafts[e.Path] = draft
			return nil
		})
	}
	if err := g.Wait(); err != nil || alone {
		return err
	}
	staging, err := os.Open(re.tree.staging)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(staging.Fd())), staging.Close())
}

// reserve reserves room before bytes are written.
func (re *restore) reserve(bytes int) error {
	written := re.written.Add(int64(bytes))
	if re.tree.Room == nil {
		return nil
	}
	return re.tree.Room(written, re.names)
}

// discard deletes the files that were not put in place.
func (re *restore) discard() {
	for _, draft := range re.drafts {
		_ = os.Remove(draft) // the staging folder is cleared with the session's next use
	}
}

// draft writes a file in the staging folder, synced if asked, and returns its name.
func (re *restore) draft(e Entry, synced bool) (string, error) {
	f, err := os.CreateTemp(re.tree.staging, "restore-")
	if err != nil {
		return "", err
	}
	err = re.store.write(e, f, re.reserve)
	if err == nil && re.tree.owner.UID >= 0 {
		err = f.Chown(re.tree.owner.UID, re.tree.owner.GID)
	}
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), e.Mode)
	}
	if err == nil {
		err = setTime(unix.AT_FDCWD, f.Name(), e.Mtime)
	}
	if err == nil && synced {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
