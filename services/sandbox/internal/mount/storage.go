package mount

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// StorageName is the name of the mount with a user's persistent files.
const StorageName = "storage"

// Storage defines where each user has a folder that outlives sessions.
type Storage struct {
	// Dir holds the folders of all users, closed to other programs.
	Dir string
	// Alias is where commands find their user's; empty: users have none.
	Alias string
	// Bytes and Inodes limit the folder of one user.
	Bytes, Inodes int64
}

func (s *Set) isStorage(name, user string) bool {
	return name == StorageName && s.o.Storage.Alias != "" && user != ""
}

// owner returns the owner of the files on disk, the same for all commands: an id that no workspace has.
func (s *Set) owner() box.Owner {
	o := s.o.Owners
	if o.Base < 0 {
		return box.Self
	}
	return box.Owner{UID: o.Base + o.Count, GID: o.Base + o.Count}
}

// openStorage makes the folder for all users and tests whether one can be shown.
func (s *Set) openStorage() error {
	if s.o.Storage.Alias == "" {
		return nil
	}
	if s.o.Unmapped && s.o.Owners.Base >= 0 {
		return fmt.Errorf("storage: %w", errUnmapped)
	}
	if err := os.MkdirAll(s.removed(), 0o700); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	if err := s.finishRemovals(); err != nil {
		return fmt.Errorf("storage: finish an interrupted removal: %w", err)
	}
	dir, err := filepath.EvalSymlinks(s.o.Storage.Dir) // mounts are opened through no link
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	s.o.Storage.Dir = dir
	if s.o.Owners.Base < 0 {
		return nil
	}
	m := box.Mount{Source: s.removed(), Writable: true, Disk: s.owner()}
	if err := tryMapping(m, box.Owner{UID: s.o.Owners.Base, GID: s.o.Owners.Base}); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

const (
	// drafts is the prefix of the names of folders that are to become a user's.
	drafts = "draft-"
	// abandoned is the age from which a draft counts as abandoned.
	abandoned = time.Hour
)

// finishRemovals deletes what was removed when a node ended, or what another node is deleting now. It
// spares recent drafts, which another node may be about to use. A command can cause files that cannot be
// deleted, so these do not keep the node from starting.
func (s *Set) finishRemovals() error {
	left, err := os.ReadDir(s.removed())
	for _, d := range left {
		if strings.HasPrefix(d.Name(), drafts) {
			if st, bad := d.Info(); bad != nil || time.Since(st.ModTime()) < abandoned {
				continue
			}
		}
		s.o.Leftovers.All(filepath.Join(s.removed(), d.Name()))
	}
	return err
}

func (s *Set) removed() string { return filepath.Join(s.o.Storage.Dir, ".removed") }

// folder returns the parent of a user's folder. Its name is a digest, because names of users may be
// anything.
func (s *Set) folder(tenant, user string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + user))
	return filepath.Join(s.o.Storage.Dir, hex.EncodeToString(sum[:]))
}

// storage returns a user's mount, and makes its folder if that is missing; nil without a user.
func (s *Set) storage(tenant, user string) (*box.Mount, error) {
	if s.o.Storage.Alias == "" || user == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.folder(tenant, user)
	have, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(have) == 0 {
		if err := s.makeStorage(dir); err != nil {
			return nil, fmt.Errorf("make the user's storage: %w", err)
		}
		have, err = os.ReadDir(dir)
	}
	if err != nil || len(have) == 0 { // another node has just deleted it
		return nil, fmt.Errorf("find the user's storage: %w", cmp.Or(err, os.ErrNotExist))
	}
	source := filepath.Join(dir, have[0].Name())
	return &box.Mount{
		Name: StorageName, Source: source, Alias: s.o.Storage.Alias, Writable: true, Disk: s.owner(),
		Bytes: s.o.Storage.Bytes, Inodes: s.o.Storage.Inodes,
	}, nil
}

// makeStorage makes a folder under a new name, so that a sandbox that still shows a removed one is not
// mistaken for one that shows this. It moves the folder in place with its parent, so that only one of
// several nodes succeeds.
func (s *Set) makeStorage(dir string) error {
	draft, err := os.MkdirTemp(s.removed(), drafts)
	if err != nil {
		return err
	}
	source := filepath.Join(draft, filepath.Base(draft))
	err = os.Mkdir(source, 0o700)
	if o := s.owner(); err == nil && o != box.Self {
		err = os.Chown(source, o.UID, o.GID)
	}
	if err == nil {
		err = unix.Rename(draft, dir)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) { // another node was first
		err = nil
	}
	return errors.Join(err, os.RemoveAll(draft))
}

// DeleteStorage deletes a user's stored files. Running commands find the folder empty and can no longer
// write to it.
func (s *Set) DeleteStorage(tenant, user string) error {
	if s.o.Storage.Alias == "" {
		return nil
	}
	places, err := s.takeAway(tenant, user)
	if err != nil {
		return err
	}
	for _, place := range places {
		for range 10 { // a command may add to it meanwhile
			if err = erase.All(place); err == nil {
				break
			}
		}
		if err != nil {
			s.o.Leftovers.All(place)
			return fmt.Errorf("delete the user's storage while a command writes to it: end the command and try again: %w", err)
		}
	}
	return nil
}

// takeAway hides a user's folder, and returns it with the remains of folders that were hidden earlier.
func (s *Set) takeAway(tenant, user string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := s.folder(tenant, user)
	prefix := filepath.Join(s.removed(), filepath.Base(folder)) + "."
	if err := os.Rename(folder, prefix+rand.Text()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return withPrefix(prefix)
}

// withPrefix returns the files and folders whose path has a prefix.
func withPrefix(path string) (all []string, err error) {
	dir, begin := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), begin) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, err
}
