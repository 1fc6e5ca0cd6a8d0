package bind

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// create makes a file beneath an open folder.
func create(dir *os.File, name string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func folder(t *testing.T, owner IDs) *os.File {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounts need root")
	}
	dir := filepath.Join(t.TempDir(), "folder")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, owner.UID, owner.GID)); err != nil {
		t.Fatal(err)
	}
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestAReadOnlyCloneRefusesEvenRoot(t *testing.T) {
	f := folder(t, IDs{0, 0})
	tree, err := Clone(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if err := create(tree, "x"); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gives %v", err)
	}
}

func TestAMappedOwnerIsAnother(t *testing.T) {
	disk, seen := IDs{4001, 4002}, IDs{300_007, 300_008}
	f := folder(t, disk)
	tree, err := Clone(f, Options{Writable: true, Disk: &disk, Seen: &seen})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if err := As(seen, func() error { return create(tree, "mine") }); err != nil {
		t.Fatalf("its owner cannot write: %v", err)
	}
	if err := As(IDs{300_009, 300_009}, func() error { return create(tree, "theirs") }); !errors.Is(err, unix.EACCES) {
		t.Errorf("writing by another user gives %v", err)
	}
	if err := As(disk, func() error { return create(tree, "disk") }); !errors.Is(err, unix.EACCES) {
		t.Errorf("through the mount, the owner on the disk is another user, but: %v", err)
	}
	st, err := os.Stat(filepath.Join(f.Name(), "mine"))
	if err != nil {
		t.Fatal(err)
	}
	if s := st.Sys().(*syscall.Stat_t); int(s.Uid) != disk.UID || int(s.Gid) != disk.GID {
		t.Errorf("on the disk it belongs to %d:%d", s.Uid, s.Gid)
	}
}

func TestAFolderBehindALinkIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/real", 0o700), os.Symlink("real", dir+"/link"), os.Mkdir(dir+"/real/sub", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir + "/link", dir + "/link/sub"} {
		if f, err := Folder(path); !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s gives %v, %v", path, f, err)
		}
	}
	root, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, path := range []string{"link", "link/sub", "../x", "/etc"} {
		if f, err := Beneath(root, path); err == nil {
			t.Errorf("%s gives %v", path, f.Name())
		}
	}
}
