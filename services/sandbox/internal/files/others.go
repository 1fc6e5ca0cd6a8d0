package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Others are the mounts of others than who acts. When a directory goes over which one lies, or
// moves, the kernel takes the mount away.
type Others interface {
	// Shown names the folders over which they may lie, and those that lead there. No other comes
	// until release is called, which may be called again.
	Shown() (names []string, release func())
	// Detach has them lie nowhere until then.
	Detach() error
}

// place is a name in an open directory.
type place struct {
	dir  *os.File
	last string
}

// detach has mounts of others lie over none of some directories, and not below them, until
// release is called: they are about to be removed, moved or replaced.
func (t *Tree) detach(places ...place) (release func(), err error) {
	if t.Others == nil {
		return func() {}, nil
	}
	names, release := t.Others.Shown()
	if err := t.detachFrom(names, places); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (t *Tree) detachFrom(names []string, places []place) error {
	others := map[identity]bool{}
	for _, name := range names {
		if _, err := t.mark(name, others); err != nil {
			return fmt.Errorf("find the place of a mount: %w", err)
		}
	}
	for _, p := range places {
		var st unix.Stat_t
		err := t.through(func() error { return unix.Fstatat(int(p.dir.Fd()), p.last, &st, unix.AT_SYMLINK_NOFOLLOW) })
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return refine(p.last, err)
		case others[identify(&st)]:
			return t.Others.Detach()
		}
	}
	return nil
}
