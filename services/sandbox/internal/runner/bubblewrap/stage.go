package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// stage shows folders to a bubblewrap that runs as another user, who could not
// reach them by their own path: a data directory below /root, say. It is a small
// file system in a mount namespace that only the spawner's thread and what it
// forks are in, so that the host's other processes never see it, and a crash
// leaves nothing behind.
type stage struct {
	spawn *spawner
	dir   string
	next  atomic.Int64 // names what is shown
}

// stageFolders may be hidden from bubblewrap, which takes nothing from them.
var stageFolders = []string{"/mnt", "/media", "/srv", "/tmp"}

func newStage(s *spawner) (*stage, error) {
	for _, dir := range stageFolders {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			g := &stage{spawn: s, dir: dir}
			return g, s.do(g.mount)
		}
	}
	return nil, fmt.Errorf("none of the folders %v exists: make one, it stays empty", stageFolders)
}

func (g *stage) mount() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	// What the host mounts later still comes in; nothing goes out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := unix.Mount("stage", g.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size=4m"); err != nil {
		return fmt.Errorf("mount the stage: %w", err)
	}
	return nil
}

// show makes a host path visible under a name and returns where. The name must be
// free.
func (g *stage) show(path, name string) (string, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return "", &os.PathError{Op: "show", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(tree) }()
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return "", err
	}
	return g.place(tree, name, st.Mode&unix.S_IFMT == unix.S_IFDIR)
}

// place puts a mount onto the stage, under a name, and returns where.
func (g *stage) place(tree int, name string, directory bool) (string, error) {
	at := filepath.Join(g.dir, name)
	return at, g.spawn.do(func() error {
		if err := makePoint(at, directory); err != nil {
			return err
		}
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return errors.Join(&os.PathError{Op: "show", Path: name, Err: err}, os.Remove(at))
		}
		return nil
	})
}

func makePoint(at string, directory bool) error {
	if directory {
		return os.Mkdir(at, 0o755)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// hide undoes show.
func (g *stage) hide(at string) error {
	return g.spawn.do(func() error {
		return errors.Join(unix.Unmount(at, unix.MNT_DETACH), os.Remove(at))
	})
}

// showAll makes the extra paths visible to bubblewrap as another user.
func (g *stage) showAll(extra []rootfs.Bind) error {
	for i := range extra {
		at, err := g.show(extra[i].Source, fmt.Sprintf("read-only.%d", i))
		if err != nil {
			return err
		}
		extra[i].Source = at
	}
	return nil
}

// folders are the writable folders of a sandbox, as bubblewrap finds them.
type folders struct {
	workspace, home string
	// tmp and shm are file systems of a size and of a number of files; empty where
	// only the sandbox itself can make them, which knows no such number.
	tmp, shm string
	mounts   []shown
	hide     func() error
}

// folders shows the writable folders of a sandbox, until it has them.
func (m *maker) folders(s box.Sandbox) (folders, error) {
	if s.Owner == box.Self {
		mounts, err := ownMounts(s)
		return folders{workspace: s.Workspace, home: s.Home, mounts: mounts, hide: func() error { return nil }}, err
	}
	if m.stage == nil {
		return folders{}, errors.New("the runner was made for commands of the service's own user only")
	}
	name := strconv.FormatInt(m.stage.next.Add(1), 10)
	var f folders
	var places []string
	f.hide = func() error {
		var faults []error
		for _, at := range places {
			faults = append(faults, m.stage.hide(at))
		}
		return errors.Join(faults...)
	}
	for _, x := range []struct {
		at   *string
		show func() (string, error)
	}{
		{&f.workspace, func() (string, error) { return m.stage.show(s.Workspace, name+".workspace") }},
		{&f.home, func() (string, error) { return m.stage.show(s.Home, name+".home") }},
		{&f.tmp, func() (string, error) { return m.stage.scratch(name+".tmp", s.Limits.TmpBytes, s.Owner) }},
		{&f.shm, func() (string, error) { return m.stage.scratch(name+".shm", s.Limits.ShmBytes, s.Owner) }},
	} {
		at, err := x.show()
		if err != nil {
			return folders{}, errors.Join(err, f.hide())
		}
		*x.at, places = at, append(places, at)
	}
	mounts, err := m.stage.showMounts(s, name)
	for _, x := range mounts {
		places = append(places, x.from)
	}
	if err != nil {
		return folders{}, errors.Join(err, f.hide())
	}
	f.mounts = mounts
	return f, nil
}

// scratch makes a file system in memory, of a size and with as many files as it has
// room for with something in them, and returns where it is. What is in it counts for
// the control group of who writes it.
func (g *stage) scratch(name string, bytes int64, o box.Owner) (string, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("make a file system in memory: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, x := range [][2]string{
		{"size", strconv.FormatInt(bytes, 10)}, {"nr_inodes", strconv.FormatInt(rootfs.ScratchFiles(bytes), 10)}, {"mode", "1777"},
		{"uid", strconv.Itoa(o.UID)}, {"gid", strconv.Itoa(o.GID)},
	} {
		if err := unix.FsconfigSetString(fs, x[0], x[1]); err != nil {
			return "", fmt.Errorf("set %s of a file system in memory to %s: %w", x[0], x[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", fmt.Errorf("make a file system in memory: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return "", fmt.Errorf("mount a file system in memory: %w", err)
	}
	defer func() { _ = unix.Close(mount) }()
	return g.place(mount, name, true)
}
