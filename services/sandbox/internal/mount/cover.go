package mount

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// PrivateFolder is the folder of the workspace for mounts that not all users get. Every workspace has it,
// so that it does not reveal such mounts.
const PrivateFolder = "mnt"

// covers returns the covers for aliases of several parts, and for those that private mounts would have. In
// every workspace a cover lies over the alias's first part. It holds only the places of the mounts shown.
// So a command cannot rename such a place and the mount with it. Another user's mounts leave no trace, not
// even in the workspace's own folder. Each sandbox has its own cover. The folder here is what the service
// itself uses; commands do not see it.
func (s *Set) covers(shown []box.Mount) ([]box.Mount, error) {
	all := make([]box.Mount, 0, len(s.firsts)+len(shown))
	for _, first := range s.firsts {
		c := box.Mount{Name: first, Alias: first, Cover: true}
		var err error
		c.Source, err = MakeCover(s.o.Covers, "", c.Places(shown))
		if err != nil {
			return nil, fmt.Errorf("make the places of mounts in %s: %w", first, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// openCovers makes the folder of all covers, and finds the first parts that need a cover.
func (s *Set) openCovers() error {
	s.firsts = []string{PrivateFolder}
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
func (s *Set) Private(tenant string) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.audience.concerns(tenant) })
}

// checkPrivate refuses an alias that other users would see. A mount at its original place has no place in
// the workspace.
func (r rule) checkPrivate() error {
	if len(r.audience) == 0 || r.Alias == "" || strings.HasPrefix(r.Alias, PrivateFolder+"/") {
		return nil
	}
	return fmt.Errorf("alias: all users would see the mount point %s, but the mount is not for all users: choose an alias below %s, such as %s/%s", r.Alias, PrivateFolder, PrivateFolder, path.Base(r.Alias))
}
