package mount

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// PrivateFolder is the folder of the workspace below which mounts lie that are not for everybody.
const PrivateFolder = "mnt"

// coverMode lets every command look.
const coverMode = 0o755

// covers are what aliases of several parts lie in: over their first part, in every workspace, lies
// a folder with the places of those mounts that are shown and nothing else. No command can give such a
// place another name, and the mount with it, and of those that somebody else has there is nothing, not
// even in the workspace's own folder. Each sandbox has one of its own; the folder here is what the
// service itself looks at, and no command sees what it does there.
func (s *Set) covers(shown []box.Mount) ([]box.Mount, error) {
	all := make([]box.Mount, 0, len(s.firsts)+len(shown))
	for _, first := range s.firsts {
		c := box.Mount{Name: first, Alias: first, Cover: true}
		var err error
		c.Source, err = s.cover(c.Places(shown))
		if err != nil {
			return nil, fmt.Errorf("make the places of mounts in %s: %w", first, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// cover is a folder with nothing but some places, which is there already unless it is the first
// with them.
func (s *Set) cover(places []string) (string, error) {
	slices.Sort(places)
	id := sha256.Sum256([]byte(strings.Join(places, "\x00")))
	dir := filepath.Join(s.o.Covers, hex.EncodeToString(id[:8]))
	for _, place := range append([]string{"."}, places...) {
		at := dir
		for part := range strings.SplitSeq(place, "/") {
			at = filepath.Join(at, part)
			if err := makeOpen(at); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}

// makeOpen makes a folder that everybody may look into, if there is none.
func makeOpen(dir string) error {
	st, err := os.Lstat(dir)
	if err == nil && st.Mode() == os.ModeDir|coverMode {
		return nil
	}
	if err := os.Mkdir(dir, coverMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, coverMode) // whatever the mask is with which the service was started
}

// openCovers makes the folder of all covers, and finds the first parts over which one lies.
func (s *Set) openCovers() error {
	aliases := []string{s.o.Storage.Alias}
	for _, r := range s.rules {
		aliases = append(aliases, r.Alias)
	}
	for _, alias := range aliases {
		if first, _, deep := strings.Cut(path.Clean(alias), "/"); deep && !slices.Contains(s.firsts, first) {
			s.firsts = append(s.firsts, first)
		}
	}
	slices.Sort(s.firsts)
	if len(s.firsts) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.o.Covers, 0o700); err != nil {
		return fmt.Errorf("make the folder for the places of mounts: %w", err)
	}
	dir, err := filepath.EvalSymlinks(s.o.Covers) // mounts are opened through no link
	if err != nil {
		return fmt.Errorf("find the folder for the places of mounts: %w", err)
	}
	s.o.Covers = dir
	return nil
}

// Private implements box.Mounts.
func (s *Set) Private() bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return len(r.whom) > 0 })
}

// checkPrivate refuses an alias that others would see. A mount at its original place has no place
// in the workspace.
func (r rule) checkPrivate() error {
	if len(r.whom) == 0 || r.Alias == "" || strings.HasPrefix(r.Alias, PrivateFolder+"/") {
		return nil
	}
	return fmt.Errorf("alias: others would see the place %s, which is not for everybody: choose one below %s, such as %s/%s", r.Alias, PrivateFolder, PrivateFolder, path.Base(r.Alias))
}
