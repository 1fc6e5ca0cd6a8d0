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

// closedBytes is the size of the folder in memory in which aliases of several parts
// lie. It holds nothing but empty folders.
const closedBytes = 64 << 10

// originals are the places outside of the workspace at which a sandbox shows mounts.
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

// showMounts puts the sandbox's mounts into a container that was created and not
// started, of whose first process it takes a descriptor. It does so itself: runtimes
// differ in what they can show as another user's, and in which links they follow.
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
		p := placer{workspace: workspace, owner: bind.IDs(s.Owner), closed: map[string]*os.File{}}
		defer p.release()
		for _, x := range all {
			if err := p.put(x); err != nil {
				return fmt.Errorf("mount %s: %w", x.Name, err)
			}
		}
		return p.close()
	})
}

// clones are mounts, one for each place, with no more rights than the sandbox is to
// have. On an error those that were made are returned, too. maker is who makes files for
// commands; nil: they do.
func clones(s box.Sandbox, mounts []box.Mount, maker *bind.IDs) (all []shown, err error) {
	for _, m := range mounts {
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

// placer puts mounts where a sandbox finds them. It works in the sandbox's mount
// namespace, and follows no link.
type placer struct {
	workspace *os.File
	owner     bind.IDs
	// closed are folders in memory, by the first part of aliases that have several:
	// closed to changes in the end, for otherwise a command could give such a folder
	// another name, and the mount with it.
	closed map[string]*os.File
}

func (p *placer) release() {
	_ = p.workspace.Close()
	for _, f := range p.closed {
		_ = f.Close()
	}
}

func (p *placer) close() error {
	for _, f := range p.closed {
		if err := bind.Close(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *placer) put(x shown) error {
	open := func() (*os.File, error) { return bind.Folder(x.Source) }
	if !x.original {
		open = func() (*os.File, error) { return p.point(x.Mount) }
	}
	at, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	return bind.Onto(at, x.tree)
}

// point is the folder over which a mount lies in the workspace.
func (p *placer) point(m box.Mount) (*os.File, error) {
	first, rest, deep := strings.Cut(m.Alias, "/")
	if !deep {
		return bind.Beneath(p.workspace, m.Alias)
	}
	dir, err := p.enclosed(first)
	if err != nil {
		return nil, err
	}
	at := ""
	for part := range strings.SplitSeq(rest, "/") {
		at = path.Join(at, part)
		err := unix.Mkdirat(int(dir.Fd()), at, 0o755)
		if err == nil {
			err = unix.Fchownat(int(dir.Fd()), at, p.owner.UID, p.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make a place for it: %w", err)
		}
	}
	return bind.Beneath(dir, at)
}

// enclosed is the folder in memory of a first part.
func (p *placer) enclosed(first string) (*os.File, error) {
	if dir := p.closed[first]; dir != nil {
		return dir, nil
	}
	at, err := bind.Beneath(p.workspace, first)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	dir, err := bind.Memory(closedBytes, 0o755, p.owner)
	if err != nil {
		return nil, err
	}
	if err := bind.Onto(at, dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	p.closed[first] = dir
	return dir, nil
}
