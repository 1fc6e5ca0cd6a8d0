package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// terminalsPath is the path of the terminals in sandboxes.
const terminalsPath = "/dev/pts"

// fixtures are shown to every sandbox: one shared, read-only tree on the stage, made once.
type fixtures struct {
	stage *rootfs.Stage
	at    string // of the tree
}

// The tree holds /dev, without terminals and shared memory, and an empty folder.
const (
	devicesPart = "/dev"
	emptyPart   = "/empty"
)

// deviceLinks are the links that programs expect in /dev.
var deviceLinks = [][2]string{
	{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
	{"pts/ptmx", "ptmx"},
}

func newFixtures(g *rootfs.Stage) (*fixtures, error) {
	f := &fixtures{g, g.Fresh("fixtures")}
	if err := g.Do(f.build); err != nil {
		return nil, fmt.Errorf("put /dev together: %w", err)
	}
	return f, nil
}

// build makes the tree, on the stage's thread.
func (f *fixtures) build() error {
	if err := os.Mkdir(f.at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("fixtures", f.at, "tmpfs", unix.MS_NOSUID, "mode=0755,size=64k"); err != nil {
		return &os.PathError{Op: "mount", Path: f.at, Err: err}
	}
	dev := f.at + devicesPart
	for _, dir := range []string{f.at + emptyPart, dev, dev + "/pts", dev + "/shm"} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // all may look into it
			return err
		}
	}
	for _, x := range deviceLinks {
		if err := os.Symlink(x[0], dev+"/"+x[1]); err != nil {
			return err
		}
	}
	for _, d := range rootfs.Devices {
		if err := showDevice(d, f.at+d); err != nil {
			return err
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	err := unix.MountSetattr(unix.AT_FDCWD, f.at, unix.AT_RECURSIVE, &attr)
	return os.NewSyscallError("mount_setattr", err)
}

// showDevice shows a device of the machine elsewhere: as a new device node, which takes no mount in every
// sandbox. Root of a user namespace cannot make one and uses a mount.
func showDevice(source, at string) error {
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return &os.PathError{Op: "show", Path: source, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return &os.PathError{Op: "show", Path: source, Err: errors.New("it is not a device")}
	}
	switch err := unix.Mknod(at, unix.S_IFCHR|0o666, int(st.Rdev)); {
	case err == nil:
		return os.Chmod(at, 0o666) //nolint:gosec // as everywhere
	case !errors.Is(err, unix.EPERM):
		return &os.PathError{Op: "mknod", Path: at, Err: err}
	}
	// Make its place without opening a file: a process that starts meanwhile would keep the file open for
	// writing, and the tree could not become read-only.
	if err := unix.Mknod(at, unix.S_IFREG|0o444, 0); err != nil {
		return &os.PathError{Op: "mknod", Path: at, Err: err}
	}
	return os.NewSyscallError("mount", unix.Mount(source, at, "", unix.MS_BIND, ""))
}

// mask returns a mount of a part of the tree, which hides the path that it is mounted on. A masked device
// cannot be opened.
func (f *fixtures) mask(part string) (int, error) {
	tree, err := rootfs.Clone(f.at + part)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return -1, errors.Join(os.NewSyscallError("mount_setattr", err), unix.Close(tree))
	}
	return tree, nil
}

// furnish adds to a sandbox what bubblewrap has no option for or is slow at: it reads the list of all
// mounts for each one that it makes. init is a descriptor of the first process. Init runs, and no command
// does yet.
func (m *maker) furnish(init int) error {
	pieces, err := m.furniture()
	defer func() {
		for _, p := range pieces {
			_ = unix.Close(p.tree)
		}
	}()
	if err == nil {
		err = bind.In(init, func() error {
			for _, p := range pieces {
				if err := put(p.tree, p.places); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("furnish the sandbox: %w", err)
	}
	return nil
}

// furniture is a mount and its path in sandboxes.
type furniture struct {
	tree   int // a descriptor
	places []string
}

// furniture makes the furniture of a sandbox, which it returns also after an error. It runs on the stage,
// because only that shows the fixtures.
func (m *maker) furniture() (all []furniture, err error) {
	makers := []struct {
		tree   func() (int, error)
		places []string
	}{
		{terminals, []string{terminalsPath}},
		{func() (int, error) { return m.fixtures.mask(rootfs.Null) }, m.layout.MaskedFiles},
		{func() (int, error) { return m.fixtures.mask(emptyPart) }, m.layout.MaskedFolders},
	}
	err = m.stage.Do(func() error {
		for _, x := range makers {
			tree, err := x.tree()
			if err != nil {
				return err
			}
			all = append(all, furniture{tree, x.places})
		}
		return nil
	})
	return all, err
}

// put shows a mount at each of some places.
func put(tree int, places []string) error {
	for i, at := range places {
		var err error
		if i == 0 {
			err = unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
		} else {
			err = unix.Mount(places[0], at, "", unix.MS_BIND, "")
		}
		if err != nil {
			return &os.PathError{Op: "mount", Path: at, Err: err}
		}
	}
	return nil
}

// terminals makes a separate, limited file system of pseudo-terminals; bubblewrap has no option for the
// limit. The machine's reserve is for those made in its own mount namespace, which excludes the stage's
// thread.
func terminals() (int, error) {
	return bind.Make("devpts", [][2]string{{"mode", "620"}, {"ptmxmode", "666"}, {"max", strconv.Itoa(box.MaxTerminals)}},
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}
