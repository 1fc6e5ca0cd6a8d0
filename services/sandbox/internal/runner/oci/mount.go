package oci

import (
	"fmt"
	"os"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

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
		defer func() { _ = workspace.Close() }()
		for _, x := range all {
			if err := x.put(workspace); err != nil {
				return fmt.Errorf("mount %s: %w", x.Name, err)
			}
		}
		return nil
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

// put puts the mount where the sandbox finds it, in whose mount namespace this is. It follows no
// link.
func (x shown) put(workspace *os.File) error {
	open := func() (*os.File, error) { return bind.Folder(x.Source) }
	if !x.original {
		open = func() (*os.File, error) { return bind.Beneath(workspace, x.Alias) }
	}
	at, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	return bind.Onto(at, x.tree)
}
