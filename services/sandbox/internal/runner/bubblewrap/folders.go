package bubblewrap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
)

// folders are the writable folders of a sandbox, as bubblewrap finds them.
type folders struct {
	workspace, home string
	// tmp and shm are file systems of a size and of a number of files; empty where
	// only the sandbox itself can make them, which knows no such number.
	tmp, shm string
	mounts   []shown
	hide     func() error // from other sandboxes, once this one has mounts of its own
	remove   func() error // after hide, once it has put them where it shows them
}

// folders shows the writable folders of a sandbox, until it has them. Bubblewrap reads the list of
// all mounts for each that it makes: those of others are to be there as short as can be.
func (m *maker) folders(s box.Sandbox) (folders, error) {
	if s.Owner == box.Self {
		mounts, err := ownMounts(s)
		nothing := func() error { return nil }
		return folders{workspace: s.Workspace, home: s.Home, mounts: mounts, hide: nothing, remove: nothing}, err
	}
	if m.stage == nil {
		return folders{}, errors.New("the runner was made for commands of the service's own user only")
	}
	mounts, err := s.MountList()
	if err != nil {
		return folders{}, err
	}
	pieces, err := pieces(s, mounts)
	defer func() {
		for _, p := range pieces {
			_ = unix.Close(p.Tree)
		}
	}()
	if err != nil {
		return folders{}, err
	}
	f, err := m.stage.Hang(pieces)
	if err != nil {
		return folders{}, err
	}
	all := folders{
		workspace: f.At("workspace"), home: f.At("home"), tmp: f.At("tmp"), shm: f.At("shm"),
		hide: f.Hide, remove: f.Clear,
	}
	for i, x := range mounts {
		all.mounts = append(all.mounts, shown{x, f.At(mountName(i))})
	}
	return all, nil
}

func mountName(i int) string { return fmt.Sprint("mount.", i) }

// pieces are the mounts of what a sandbox is shown, on an error as well. Mounts have no
// more rights than it is to have: what bubblewrap makes of them cannot give any back.
func pieces(s box.Sandbox, mounts []box.Mount) (all []stage.Piece, err error) {
	add := func(name string, tree int, fault error) {
		if fault != nil {
			err = errors.Join(err, fault)
			return
		}
		all = append(all, stage.Piece{Name: name, Tree: tree})
	}
	tree, fault := stage.Clone(s.Workspace)
	add("workspace", tree, fault)
	tree, fault = stage.Clone(s.Home)
	add("home", tree, fault)
	tree, fault = stage.Scratch(s.Limits.TmpBytes, s.Owner)
	add("tmp", tree, fault)
	tree, fault = stage.Scratch(s.Limits.ShmBytes, s.Owner)
	add("shm", tree, fault)
	for i, m := range mounts {
		if m.Cover { // there is nothing outside
			continue
		}
		if tree, fault = mountTree(s, m); fault != nil {
			fault = fmt.Errorf("mount %s: %w", m.Name, fault)
		}
		add(mountName(i), tree, fault)
	}
	return all, err
}

// mountTree is a mount of what a sandbox is shown besides. The caller has its descriptor.
func mountTree(s box.Sandbox, m box.Mount) (int, error) {
	f, err := m.Open(s.Workspace)
	if err != nil {
		return -1, err
	}
	defer func() { _ = f.Close() }()
	tree, err := bind.Clone(f, m.Options(s.Owner))
	if err != nil {
		return -1, err
	}
	defer func() { _ = tree.Close() }()
	return unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}
