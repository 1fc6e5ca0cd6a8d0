package box

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// trash holds discarded folders until they are deleted.
const trash = ".trash"

// passing are the prefixes of short-lived folders below the data directory that probe what works here. The
// service and the package quota make them.
var passing = []string{".probe-", ".quota-"}

// PassingFolder makes a folder below a data directory that the next start removes if a crash leaves it.
func PassingFolder(data string) (string, error) { return os.MkdirTemp(data, passing[0]) }

// dataDir is the data directory of a node. It is safe for concurrent use.
type dataDir struct {
	path      string
	lock      *os.File // keeps other services out
	leftovers *erase.Later
}

// openDataDir locks a data directory, and makes it if it does not exist.
func openDataDir(path string, leftovers *erase.Later) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s is used by another sandbox service: stop it, or choose another directory: %w", path, err), lock.Close())
	}
	return &dataDir{path: path, lock: lock, leftovers: leftovers}, nil
}

func (d *dataDir) close() error { return durable.Unlock(d.lock) }

// sync writes all that was written to the directory's file system to disk.
func (d *dataDir) sync() error { return unix.Syncfs(int(d.lock.Fd())) }

// each calls visit for the folder of every session, by the folder's name and that of its tenant.
func (d *dataDir) each(visit func(tenant, session string) error) error {
	tenants, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	for _, t := range tenants {
		if !t.IsDir() || strings.HasPrefix(t.Name(), ".") {
			continue
		}
		sessions, err := os.ReadDir(filepath.Join(d.path, t.Name()))
		if err != nil {
			return fmt.Errorf("read the data directory: %w", err)
		}
		for _, s := range sessions {
			if !s.IsDir() {
				continue
			}
			if err := visit(t.Name(), s.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// byAge lists the sessions, least recently changed first. It leaves out those that are being made or deleted.
func (d *dataDir) byAge() ([]Key, error) {
	type aged struct {
		key Key
		at  time.Time
	}
	var all []aged
	err := d.each(func(tenant, session string) error {
		if st, err := os.Stat(filepath.Join(d.path, tenant, session, "execs")); err == nil {
			all = append(all, aged{Key{Tenant: tenantOf(tenant), Session: session}, st.ModTime()})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.key.Session, b.key.Session)) })
	keys := make([]Key, len(all))
	for i, a := range all {
		keys[i] = a.key
	}
	return keys, nil
}

// clearPassing removes the short-lived folders of an earlier service.
func (d *dataDir) clearPassing() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	for _, e := range entries {
		for _, p := range passing {
			if strings.HasPrefix(e.Name(), p) {
				err = errors.Join(err, erase.All(filepath.Join(d.path, e.Name())))
			}
		}
	}
	return err
}

// emptyTrash deletes the remains of discarded folders.
func (d *dataDir) emptyTrash() error {
	dir := filepath.Join(d.path, trash)
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range left {
		d.leftovers.All(filepath.Join(dir, e.Name()))
	}
	return nil
}

// discard deletes a folder. It moves the folder away at once. On return the folder is deleted, or left over
// if the file system refuses to delete it.
func (d *dataDir) discard(dir string) error {
	if err := os.MkdirAll(filepath.Join(d.path, trash), 0o700); err != nil {
		return err
	}
	place, err := os.MkdirTemp(filepath.Join(d.path, trash), "")
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(place, "x")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d.leftovers.All(place)
	return nil
}
