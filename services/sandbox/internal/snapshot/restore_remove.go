package snapshot

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// remove removes surplus entries, from the end, so that directories are empty by then.
func (re *restore) remove(have, surplus []Entry) error {
	if err := re.unlock(have); err != nil {
		return err
	}
	for n := len(surplus) - 1; n >= 0; n-- {
		if err := re.removeOne(surplus[n]); err != nil {
			return fmt.Errorf("remove %.200s: %w", surplus[n].Path, err)
		}
	}
	return nil
}

func (re *restore) removeOne(e Entry) error {
	if _, point := re.tree.Points[e.Path]; point && e.Kind == Directory {
		return nil
	}
	dir, last, err := re.parent(e.Path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	re.done.Removed++
	if e.Kind == Directory {
		if re.dirName == e.Path {
			re.leave()
		}
		return removeAll(dir, last)
	}
	return absent(unix.Unlinkat(dir, last, 0))
}

// removeAll removes a directory with its contents, following no link.
func removeAll(dir int, last string) error {
	err := absent(unix.Unlinkat(dir, last, unix.AT_REMOVEDIR))
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EACCES) {
		return err
	}
	path, back, err := rights.Lend(dir, last, 0o700)
	if err != nil {
		return absent(err)
	}
	defer back()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), last)
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := absent(unix.Unlinkat(fd, name, 0))
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			err = removeAll(fd, name)
		}
		if err != nil {
			return err
		}
	}
	return absent(unix.Unlinkat(dir, last, unix.AT_REMOVEDIR))
}

// absent drops the error of a missing file.
func absent(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// clearPlace removes what is in the way of an entry: a file of another kind that the walk missed or that
// was made since.
func clearPlace(dir int, last string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, last, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return absent(err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return removeAll(dir, last)
	}
	return absent(unix.Unlinkat(dir, last, 0))
}
