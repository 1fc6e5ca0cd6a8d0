package rights

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// loan is a file whose mode the service has changed temporarily. Several goroutines may use it: the first
// one changes the mode, and the last one restores it.
type loan struct {
	mode    uint32      // the mode to restore
	rights  uint32      // the rights that were lent
	changed unix.Stat_t // the status after the change
	holders int
}

type identity struct{ device, inode uint64 }

// loans are all loans of this process: a workspace may be counted while a snapshot of it is made.
var loans = struct {
	mu  sync.Mutex
	all map[identity]*loan

	// The number of open loans, and of all loans ever, for readers without mu. Both are set before a mode
	// is changed.
	open, begun atomic.Int64
}{all: map[identity]*loan{}}

// undisturbed calls f and reports whether no mode was on loan meanwhile.
func undisturbed(f func()) bool {
	begun, open := loans.begun.Load(), loans.open.Load()
	f()
	return open == 0 && loans.begun.Load() == begun
}

// Stat returns a file's status, with the mode that its owner gave it. It follows no link.
func Stat(dir int, name string, st *unix.Stat_t) (err error) {
	look := func() { err = unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW) }
	if undisturbed(look) {
		return err
	}
	loans.mu.Lock()
	defer loans.mu.Unlock()
	if look(); err != nil {
		return err
	}
	if l := loans.all[identify(st)]; l != nil && st.Mode == l.changed.Mode {
		st.Mode = st.Mode&^bits | l.mode
	}
	return nil
}

// Folder opens a folder in another one, to list it and to inspect its files, until back is called. The
// caller must call back. It follows no link. mode is the folder's mode as seen before.
func Folder(dir int, name string, mode uint32) (fd int, back func(), err error) {
	if undisturbed(func() { fd, err = unix.Openat(dir, name, folder, 0) }) && err == nil && (mode&search != 0 || searchable(fd)) {
		return fd, func() {}, nil
	}
	switch {
	case err == nil:
		_ = unix.Close(fd)
	case !errors.Is(err, unix.EACCES):
		return -1, nil, err
	}
	path, back, err := lend(dir, name, 0o500, unix.O_DIRECTORY)
	if err != nil {
		return -1, nil, err
	}
	if fd, err = unix.Open(path, folder&^unix.O_NOFOLLOW, 0); err != nil {
		back()
		return -1, nil, err
	}
	return fd, back, nil
}

// searchable reports whether the files in an open folder can be reached.
func searchable(dir int) bool {
	var st unix.Stat_t
	return !errors.Is(unix.Fstatat(dir, ".", &st, 0), unix.EACCES)
}

// Lend gives the owner rights to a file and returns a name of it that no rename can change. It follows no
// link. The caller must call back, which restores the mode unless a command has set another one meanwhile.
// A command that sets exactly the mode on loan goes unnoticed, and back restores the old mode.
func Lend(dir int, name string, rights uint32) (path string, back func(), err error) {
	return lend(dir, name, rights, 0)
}

func lend(dir int, name string, rights uint32, flags int) (path string, back func(), err error) {
	at, err := openPath(dir, name, flags)
	if err != nil {
		return "", nil, err
	}
	l, err := borrow(at, rights)
	if err != nil {
		return "", nil, errors.Join(err, unix.Close(at))
	}
	return link(at), func() {
		l.back(at)
		_ = unix.Close(at)
	}, nil
}

func openPath(dir int, name string, flags int) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
}

// borrow takes rights to an open file. It returns nil and no error if its owner has them.
func borrow(at int, rights uint32) (*loan, error) {
	loans.mu.Lock()
	defer loans.mu.Unlock()
	st, l, err := find(at)
	if err != nil || l == nil && st.Mode&rights == rights {
		return nil, err
	}
	begun := l == nil
	if begun {
		l = &loan{mode: st.Mode & bits, changed: st}
		loans.open.Add(1)
	}
	loans.begun.Add(1)
	if st.Mode != l.changed.Mode { // a command has changed it meanwhile
		l.mode, l.changed = st.Mode&bits, st
	}
	if st.Mode&rights != rights {
		err = l.give(at, st.Mode&bits|rights)
	}
	if err != nil {
		if begun {
			loans.open.Add(-1)
		}
		return nil, err
	}
	l.rights |= rights
	l.holders++
	loans.all[identify(&st)] = l
	return l, nil
}

// give sets the mode of the file. mu is held.
func (l *loan) give(at int, mode uint32) error {
	if err := unix.Chmod(link(at), mode); err != nil {
		return err
	}
	return unix.Fstat(at, &l.changed)
}

// back returns one holder's part of the loan.
func (l *loan) back(at int) {
	if l == nil {
		return
	}
	loans.mu.Lock()
	defer loans.mu.Unlock()
	if l.holders--; l.holders > 0 {
		return
	}
	var now unix.Stat_t
	if err := unix.Fstat(at, &now); err == nil && now.Mode == l.changed.Mode {
		_ = unix.Chmod(link(at), l.mode) // the service was permitted to change this file
	}
	delete(loans.all, identify(&l.changed))
	loans.open.Add(-1)
}

// find returns the status of an open file, and its loan; nil if it has none. mu is held.
func find(at int) (st unix.Stat_t, l *loan, err error) {
	if err = unix.Fstat(at, &st); err == nil {
		l = loans.all[identify(&st)]
	}
	return st, l, err
}

func identify(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino} //nolint:unconvert // the type is the architecture's
}

// Set sets a file's mode permanently, never that of a link's target. It sets set-user-id and set-group-id
// only on the owner's own file, because a command may have replaced the file. An owner of -1 means the
// service's own user.
func Set(dir int, name string, mode uint32, owner int) error {
	if owner < 0 {
		owner = os.Geteuid()
	}
	_, err := change(dir, name, func(st *unix.Stat_t, _ uint32) uint32 {
		if int(st.Uid) != owner {
			return mode &^ identities
		}
		return mode
	})
	return err
}

// Add gives a folder's owner rights permanently, unless the service has them anyway. It reports whether it
// changed the mode.
func Add(dir int, name string, rights uint32) (changed bool, err error) {
	has := func() { err = unix.Faccessat(dir, name, rights>>6, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW) }
	if undisturbed(has) && err == nil {
		return false, nil
	}
	return change(dir, name, func(_ *unix.Stat_t, mode uint32) uint32 { return mode | rights })
}

// change sets a file's mode, ignoring loans.
func change(dir int, name string, to func(st *unix.Stat_t, mode uint32) uint32) (changed bool, err error) {
	at, err := openPath(dir, name, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(at) }()
	loans.mu.Lock()
	defer loans.mu.Unlock()
	st, l, err := find(at)
	if err != nil {
		return false, err
	}
	was := st.Mode & bits
	if l != nil && st.Mode == l.changed.Mode {
		was = l.mode
	}
	mode := to(&st, was)
	switch {
	case l != nil:
		l.mode = mode
		err = l.give(at, mode|l.rights)
	case mode != was:
		err = unix.Chmod(link(at), mode)
	}
	return mode != was, err
}
