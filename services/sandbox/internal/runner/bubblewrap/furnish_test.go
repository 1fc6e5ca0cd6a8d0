package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// All sandboxes see the machine's devices and cannot change them.
func TestFixturesAreDevicesThatNobodyCanChange(t *testing.T) {
	g := newStage(t)
	f, err := newFixtures(g)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Do(func() error {
		for _, d := range rootfs.Devices {
			var ours, theirs unix.Stat_t
			if err := errors.Join(unix.Stat(d, &theirs), unix.Stat(f.at+d, &ours)); err != nil {
				return err
			}
			if ours.Rdev != theirs.Rdev || ours.Mode != unix.S_IFCHR|0o666 {
				t.Errorf("%s is %x, mode %o; the machine's is %x", d, ours.Rdev, ours.Mode, theirs.Rdev)
			}
			if err := os.Chmod(f.at+d, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("%s was changed, and %v", d, err)
			}
		}
		if err := os.WriteFile(f.at+"/dev/null", []byte("x"), 0); err != nil {
			t.Errorf("a device cannot be used: %v", err)
		}
		for _, dir := range []string{"", devicesPart, devicesPart + "/shm", emptyPart} {
			if err := os.WriteFile(f.at+dir+"/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("a file was made in %q, and %v", dir, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where root may make no device, as in a user namespace, the machine's own is shown.
func TestADeviceIsShownByAMountWhereNoneCanBeMade(t *testing.T) {
	g := newStage(t)
	err := g.Do(func() error {
		if err := forgoMknod(); err != nil {
			return err
		}
		f := &fixtures{g, g.Fresh("fixtures")}
		if err := f.build(); err != nil {
			return err
		}
		var ours, theirs unix.Stat_t
		if err := errors.Join(unix.Stat("/dev/zero", &theirs), unix.Stat(f.at+"/dev/zero", &ours)); err != nil {
			return err
		}
		if ours.Dev != theirs.Dev || ours.Ino != theirs.Ino {
			t.Error("it is another one")
		}
		if err := os.WriteFile(f.at+"/dev/null", []byte("x"), 0); err != nil {
			t.Errorf("a device cannot be used: %v", err)
		}
		if err := os.Chmod(f.at+"/dev/null", 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("the machine's device was changed, and %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// forgoMknod takes the right to make devices from the calling thread.
func forgoMknod() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_MKNOD
	return unix.Capset(&header, &data[0])
}

// A mask is a device that cannot be opened, and a folder with nothing in it.
func TestMasksHideWhatTheyAreOn(t *testing.T) {
	g := newStage(t)
	f, err := newFixtures(g)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Do(func() error {
		file, err := f.mask(rootfs.Null)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(file) }()
		folder, err := f.mask(emptyPart)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(folder) }()
		at, under := g.Fresh("file"), g.Fresh("folder")
		if err := errors.Join(os.WriteFile(at, []byte("secret"), 0o600), os.Mkdir(under, 0o755), os.WriteFile(under+"/secret", nil, 0o600)); err != nil {
			return err
		}
		if err := errors.Join(put(file, []string{at}), put(folder, []string{under})); err != nil {
			return err
		}
		if raw, err := os.ReadFile(at); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("the file can be read: %q, %v", raw, err)
		}
		if all, err := os.ReadDir(under); err != nil || len(all) > 0 {
			t.Errorf("the folder shows %v, %v", all, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
