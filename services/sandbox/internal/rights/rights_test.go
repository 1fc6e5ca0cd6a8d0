package rights

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// modeOf is a file's mode as anybody sees it.
func modeOf(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Mode & bits
}

// shut makes a folder that its owner has closed, with a file.
func shut(t *testing.T, mode uint32) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(path+"/f", nil, 0o600), unix.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Chmod(path, 0o700) })
	return path
}

func TestTheOwnerOfAFolderOfTheSandboxesOwnHasAllRights(t *testing.T) {
	t.Parallel()
	for mode, want := range map[uint32]uint32{0: 0o700, 0o644: 0o744, 0o1077: 0o1777, 0o755: 0o755} {
		dir := shut(t, mode)
		fd, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		if got := modeOf(t, dir); got != want {
			t.Errorf("the mode %o became %o, want %o", mode, got, want)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link); !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link: %v", err)
	}
}

// TestAsAPlainUser runs the other tests as a user to whom files can be closed.
func TestAsAPlainUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is that user")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "fairlead-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "rights.test")
	if err := errors.Join(os.WriteFile(binary, self, 0o755), os.Chmod(dir, 0o755), os.Mkdir(dir+"/tmp", 0o755), os.Chown(dir+"/tmp", nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.timeout=2m")
	cmd.Dir, cmd.Env = dir+"/tmp", []string{"TMPDIR=" + dir + "/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
