package oci

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// coverBytes is the size of a cover, a file system in memory with only empty folders.
const coverBytes = 64 << 10

// originals returns the places outside of the workspace at which a sandbox shows mounts.
func originals(all []box.Mount) []string {
	var places []string
	for _, m := range all {
		if m.Original {
			places = append(places, m.Source)
		}
	}
	return places
}

// shown is a mount at one of its places.
type shown struct {
	box.Mount
	original bool // not at its alias
	tree     *os.File
}

// showMounts attaches the sandbox's mounts to a container that is created but not started; process is a
// descriptor of its first process. The runtime is not used: runtimes differ in mapping owners and in
// following links.
func showMounts(s box.Sandbox, mounts []box.Mount, process int) error {
	all, err := clones(s, mounts, nil)
	defer func() {
		for _, x := range all {
			_ = x.tree.Close()
		}
	}()
	if err != nil {
		return err
	}
	return bind.In(process, func() error {
		workspace, err := bind.Folder(box.WorkspacePath)
		if err != nil {
			return err
		}
		defer func() { _ = workspace.Close() }()
		for _, x := range all {
			if err := x.put(workspace); err != nil {
				return fmt.Errorf("mount %s: %w", x.Name, err)
			}
		}
		return nil
	})
}

// clones returns the mounts, one for each place, with restricted rights. After an error it also returns
// those already made. maker is the user that makes files for commands; nil: the commands' own.
func clones(s box.Sandbox, mounts []box.Mount, maker *bind.IDs) (all []shown, err error) {
	for _, m := range mounts {
		if m.Cover {
			tree, err := cover(s.Owner, m.Places(mounts))
			if err != nil {
				return all, fmt.Errorf("mount %s: %w", m.Name, err)
			}
			all = append(all, shown{m, false, tree})
			continue
		}
		for _, original := range []bool{true, false} {
			if original && !m.Original || !original && m.Alias == "" {
				continue
			}
			tree, err := clone(s, m, maker)
			if err != nil {
				return all, fmt.Errorf("mount %s: %w", m.Name, err)
			}
			all = append(all, shown{m, original, tree})
		}
	}
	return all, nil
}

func clone(s box.Sandbox, m box.Mount, maker *bind.IDs) (*os.File, error) {
	f, err := m.Open(s.Workspace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	o := m.Options(s.Owner)
	o.Maker = maker
	return bind.Clone(f, o)
}

// cover makes a read-only folder in memory with the places of mounts. Otherwise a command could rename a
// place, and the mount with it. The runtime is not used, because some make such places in the folder below.
func cover(o box.Owner, places []string) (*os.File, error) {
	dir, err := bind.Memory(coverBytes, 0o755, bind.IDs(o))
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		at := ""
		for part := range strings.SplitSeq(place, "/") {
			at = path.Join(at, part)
			if err := makePlace(dir, at, o); err != nil {
				return nil, errors.Join(fmt.Errorf("make the place %s: %w", place, err), dir.Close())
			}
		}
	}
	if err := bind.Close(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func makePlace(dir *os.File, at string, o box.Owner) error {
	err := unix.Mkdirat(int(dir.Fd()), at, 0o755)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err == nil {
		err = unix.Fchownat(int(dir.Fd()), at, o.UID, o.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// put attaches the mount at its place, in the sandbox's mount namespace. It follows no link.
func (x shown) put(workspace *os.File) error {
	open := func() (*os.File, error) { return bind.Folder(x.Source) }
	switch {
	case x.original:
	case path.IsAbs(x.Alias):
		open = func() (*os.File, error) { return bind.Folder(x.Alias) }
	default:
		open = func() (*os.File, error) { return bind.Beneath(workspace, x.Alias) }
	}
	at, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	return bind.Onto(at, x.tree)
}
