package mount

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// find returns the request for a mount.
func find(asked []box.Ask, name string) (box.Ask, bool) {
	i := slices.IndexFunc(asked, func(a box.Ask) bool { return a.Name == name })
	if i < 0 {
		return box.Ask{}, false
	}
	return asked[i], true
}

// checkAsked returns an error for a requested mount that does not exist and is not optional. The mounts that
// are not the operator's rules have one form only.
func (s *Set) checkAsked(asked []box.Ask, all []box.Mount, user string) error {
	for _, a := range asked {
		own := s.isStorage(a.Name, user) || a.Name == WorkflowsFolder && len(all) > 0
		switch {
		case own && (a.Path != "" || a.Alias != "" || a.Mode != ""):
			return fmt.Errorf("%w: %s always has its own place and mode: leave out path, alias and mode", box.ErrMountRefused, a.Name)
		case !own && !a.Optional && !slices.ContainsFunc(all, func(m box.Mount) bool { return m.Name == a.Name }):
			return fmt.Errorf("%w: %s", box.ErrNoMount, a.Name)
		}
	}
	return nil
}

// show returns a mount as a session requests it, which is never more than the operator gives.
func (s *Set) show(m box.Mount, a box.Ask) (box.Mount, error) {
	switch {
	case a.Mode == ReadWrite && !m.Writable:
		return m, fmt.Errorf("%w: %s is read-only, and the mode is rw: leave the mode out, or ask the operator to make the mount writable", box.ErrMountRefused, m.Name)
	case a.Mode == ReadOnly:
		m.Writable, m.Disk = false, box.Owner{}
	}
	if a.Alias != "" {
		if err := checkAlias(a.Alias); err != nil || !strings.HasPrefix(a.Alias, PrivateFolder+"/") {
			return m, fmt.Errorf("%w: the alias %q of %s is not a path below %s, such as %s/%s", box.ErrMountRefused, a.Alias, m.Name, PrivateFolder, PrivateFolder, m.Name)
		}
		m.Alias = a.Alias
	}
	if a.Path == "" && !a.Optional {
		return m, nil
	}
	if strings.HasPrefix(a.Path, "/") || path.Clean("/"+a.Path) != "/"+a.Path || strings.ContainsRune(a.Path, 0) {
		return m, fmt.Errorf("%w: the path %q of %s is not a plain path in the mount: leave out `.`, `..` and empty parts", box.ErrMountRefused, a.Path, m.Name)
	}
	if err := s.reach(m, a.Path); err != nil {
		return m, err
	}
	m.Source = path.Join(m.Source, a.Path)
	return m, nil
}

// reach returns ErrNoMount unless commands that are shown the whole mount can reach a folder in it. Without
// this check, a session could look past a folder that is closed to commands.
func (s *Set) reach(m box.Mount, name string) error {
	var parts []string
	if name != "" {
		parts = strings.Split(name, "/")
	}
	dir, err := bind.Folder(m.Source)
	for _, part := range parts {
		if err != nil {
			break
		}
		outer := dir
		if dir = nil; !s.mayEnter(outer, m.Disk) {
			err = unix.EACCES
		} else {
			dir, err = bind.Beneath(outer, part)
		}
		_ = outer.Close()
	}
	if dir != nil {
		_ = dir.Close()
	}
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.ENAMETOOLONG} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %s has no folder %q that commands can reach without links", box.ErrNoMount, m.Name, name)
		}
	}
	return err
}

// mayEnter reports whether commands may enter a folder of a mount with an owner on disk. Commands that run as
// the service's own user have its rights, which the kernel has checked.
func (s *Set) mayEnter(dir *os.File, disk box.Owner) bool {
	if s.o.Owners.Base < 0 {
		return true
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return false
	}
	switch own := disk != (box.Owner{}); {
	case own && int(st.Uid) == disk.UID:
		return st.Mode&unix.S_IXUSR != 0
	case own && int(st.Gid) == disk.GID:
		return st.Mode&unix.S_IXGRP != 0
	}
	return st.Mode&unix.S_IXOTH != 0
}

// checkOverlap refuses a requested alias that another mount has, or that lies in one or around one.
func checkOverlap(asked []box.Ask, all []box.Mount) error {
	for _, a := range asked {
		if a.Alias == "" {
			continue
		}
		for _, m := range all {
			if m.Name != a.Name && m.Alias != "" && (within(m.Alias, a.Alias) || within(a.Alias, m.Alias)) {
				return fmt.Errorf("%w: the alias %s of %s overlaps %s, the place of %s: choose another alias", box.ErrMountRefused, a.Alias, a.Name, m.Alias, m.Name)
			}
		}
	}
	return nil
}
