package bubblewrap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// folders are the writable folders of a sandbox, by their paths for bubblewrap.
type folders struct {
	workspace, home string
	// tmp and shm are file systems with a limited size and number of files. They are empty where only the
	// sandbox itself can make them, without a limit of files.
	tmp, shm string
	mounts   []shown
	hide     func() error // from other sandboxes, once this one has its own mounts
	remove   func() error // after hide, once the sandbox shows them
}

// folders shows the writable folders of a sandbox on the stage until it has them. Bubblewrap reads the list
// of all mounts for each one that it makes, so the mounts of other sandboxes must be short-lived.
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

// pieces returns the mounts that a sandbox is shown, also after an error. Their rights are already
// restricted: bubblewrap cannot restore any.
func pieces(s box.Sandbox, mounts []box.Mount) (all []rootfs.Piece, err error) {
	add := func(name string, tree int, fault error) {
		if fault != nil {
			err = errors.Join(err, fault)
			return
		}
		all = append(all, rootfs.Piece{Name: name, Tree: tree})
	}
	tree, fault := rootfs.Clone(s.Workspace)
	add("workspace", tree, fault)
	tree, fault = rootfs.Clone(s.Home)
	add("home", tree, fault)
	tree, fault = rootfs.Scratch(s.Limits.TmpBytes, s.Owner)
	add("tmp", tree, fault)
	tree, fault = rootfs.Scratch(s.Limits.ShmBytes, s.Owner)
	add("shm", tree, fault)
	for i, m := range mounts {
		if m.Cover { // it exists only inside
			continue
		}
		if tree, fault = mountTree(s, m); fault != nil {
			fault = fmt.Errorf("mount %s: %w", m.Name, fault)
		}
		add(mountName(i), tree, fault)
	}
	return all, err
}

// mountTree returns a further mount of a sandbox as a descriptor, which the caller owns.
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
