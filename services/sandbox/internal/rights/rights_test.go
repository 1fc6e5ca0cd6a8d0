package rights

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// modeOf returns a file's mode as all users see it.
func modeOf(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Mode & bits
}

// owned is the mode that rights tell.
func owned(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := Stat(unix.AT_FDCWD, path, &st); err != nil {
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

// Several close it without a pause for far longer than a number of attempts takes, and no luck
// is needed afterwards.
func TestAFolderIsOpenedThatACommandKeepsClosing(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	for range 5 {
		dir := shut(t, 0)
		var closing sync.WaitGroup
		for range 4 {
			closing.Go(func() {
				for begun := time.Now(); time.Since(begun) < 100*time.Millisecond; {
					_ = unix.Chmod(dir, 0)
				}
			})
		}
		fd, err := Open(dir)
		if err != nil {
			t.Error(err)
		}
		_ = unix.Close(fd)
		closing.Wait()
	}
}

// The service ignores closed files below such a folder, and does not wait for them.
func TestWhatIsClosedBelowIsToldSoon(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	dir := shut(t, 0)
	above, err := os.Open(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = above.Close() }()
	tries := 0
	err = Through(above, func() error {
		tries++
		var st unix.Stat_t
		return unix.Fstatat(int(above.Fd()), "d/f", &st, 0)
	})
	if !errors.Is(err, unix.EACCES) || tries > 2*atOnce {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestALoanIsGivenBack(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	for _, mode := range []uint32{0, 0o077, 0o311, 0o600, 0o4400} {
		dir := shut(t, mode)
		fd, back, err := Folder(unix.AT_FDCWD, dir, mode)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, "f", &st, 0); err != nil {
			t.Errorf("looking into a folder of mode %o: %v", mode, err)
		}
		if got := owned(t, dir); got != mode {
			t.Errorf("meanwhile it has the mode %o, want %o", got, mode)
		}
		back()
		if got := modeOf(t, dir); got != mode {
			t.Errorf("afterwards it has the mode %o, want %o", got, mode)
		}
		_ = unix.Close(fd)
	}
}

// What a command does meanwhile stays.
func TestALoanLeavesWhatACommandHasSet(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	for name, meanwhile := range map[string]struct {
		do   func(dir string) error
		want uint32
	}{
		"another mode": {func(dir string) error { return unix.Chmod(dir, 0o755) }, 0o755},
		"another name": {func(dir string) error {
			return seen(dir, func() error {
				return errors.Join(os.Rename(dir, dir+"2"), os.Rename(dir+"2", dir))
			})
		}, 0},
		"a new file": {func(dir string) error {
			return errors.Join(unix.Chmod(dir, 0o700), os.WriteFile(dir+"/g", nil, 0o600), unix.Chmod(dir, 0o100))
		}, 0o100},
		"a mode of ours": {func(dir string) error { return Set(unix.AT_FDCWD, dir, 0o311, -1) }, 0o311},
		"ours, and a time": {func(dir string) error {
			return errors.Join(Set(unix.AT_FDCWD, dir, 0, -1), unix.Utimes(dir, make([]unix.Timeval, 2)))
		}, 0},
		"more rights": {func(dir string) error {
			changed, err := Add(unix.AT_FDCWD, dir, 0o700)
			if !changed {
				err = errors.New("nothing was changed")
			}
			return err
		}, 0o700},
	} {
		dir := shut(t, 0)
		fd, back, err := Folder(unix.AT_FDCWD, dir, 0)
		if err == nil {
			err = meanwhile.do(dir)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back()
		_ = unix.Close(fd)
		if got := modeOf(t, dir); got != meanwhile.want {
			t.Errorf("%s: the mode is %o, want %o", name, got, meanwhile.want)
		}
	}
}

func TestALoanOfAFileIsGivenBackWhenItIsLinked(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0); err != nil {
		t.Fatal(err)
	}
	_, back, err := Lend(unix.AT_FDCWD, file, 0o400)
	if err != nil {
		t.Fatal(err)
	}
	err = seen(file, func() error { return errors.Join(os.Link(file, file+"2"), os.Remove(file+"2")) })
	if err != nil {
		t.Error(err)
	}
	back()
	if got := modeOf(t, file); got != 0 {
		t.Errorf("the mode is %o", got)
	}
}

func TestWhoseFileItIsNotGetsNoIdentity(t *testing.T) {
	t.Parallel()
	dir, own := shut(t, 0o755), os.Geteuid()
	for owner, want := range map[int]uint32{-1: 0o7755, own: 0o7755, own + 1: 0o1755} {
		if err := Set(unix.AT_FDCWD, dir, 0o7755, owner); err != nil {
			t.Fatal(err)
		}
		if got := modeOf(t, dir); got != want {
			t.Errorf("for the user %d the mode is %o, want %o", owner, got, want)
		}
	}
}

// seen does something to a file until the file system's clock has moved on.
func seen(path string, do func() error) error {
	var was, st unix.Stat_t
	err := unix.Lstat(path, &was)
	for st = was; err == nil && st.Ctim == was.Ctim; {
		err = errors.Join(do(), unix.Lstat(path, &st))
	}
	return err
}

func TestSeveralBorrowAtATime(t *testing.T) {
	t.Parallel()
	plainuser.Need(t)
	dir := shut(t, 0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if got := owned(t, dir); got != 0 {
					t.Errorf("its owner's mode is %o", got)
					return
				}
				fd, back, err := Folder(unix.AT_FDCWD, dir, 0o700)
				if err != nil {
					t.Error(err)
					return
				}
				var st unix.Stat_t
				if err := unix.Fstatat(fd, "f", &st, 0); err != nil {
					t.Errorf("what is in it: %v", err)
				}
				back()
				_ = unix.Close(fd)
			}
		})
	}
	all.Wait()
	if got := modeOf(t, dir); got != 0 {
		t.Errorf("the mode is %o", got)
	}
}

// TestAsAPlainUser runs the other tests as a user to whom files can be closed.
func TestAsAPlainUser(t *testing.T) {
	plainuser.Tests(t, plainuser.Folder(t), nil, "-test.timeout=10m")
}
