package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Why something cannot be packed, after its name.
var (
	errClosed  = errors.New("is closed to reading: open it with chmod")
	errShorter = errors.New("became shorter while it was read: try again")
)

// vanished says whether what was there is there no more, or is something else.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO)
}

// openClosed opens a file to read it. When the service has the same user as the
// commands, one of them may have closed the file to it.
func openClosed(dir int, last string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, last, flags, 0)
	if errors.Is(err, unix.EACCES) {
		var shut func()
		if fd, shut, err = reopen(dir, last, flags, 0o400); err == nil {
			shut()
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), last), nil
}

// openFolder opens a directory to walk it. One that a command has closed is open until
// shut is called: what is in it can be reached no longer than that.
func openFolder(dir int, last string) (fd int, shut func(), err error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err = unix.Openat(dir, last, flags, 0)
	if err == nil && !searchable(fd) {
		_ = unix.Close(fd)
		err = unix.EACCES
	}
	if errors.Is(err, unix.EACCES) {
		return reopen(dir, last, flags, 0o700)
	}
	return fd, func() {}, err
}

// searchable says whether the files in an open directory can be reached.
func searchable(dir int) bool {
	var st unix.Stat_t
	return !errors.Is(unix.Fstatat(dir, ".", &st, 0), unix.EACCES)
}

// reopen opens a file with rights that its owner has not, until shut sets its mode back.
// By descriptor: by name, a command could have a link changed instead.
func reopen(dir int, last string, flags int, rights uint32) (fd int, shut func(), err error) {
	at, err := unix.Openat(dir, last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, nil, errors.Join(err, unix.Close(at))
	}
	name := fmt.Sprintf("/proc/self/fd/%d", at)
	if err := unix.Chmod(name, st.Mode&0o7777|rights); err != nil {
		return -1, nil, errors.Join(unix.EACCES, unix.Close(at))
	}
	shut = func() {
		_ = unix.Chmod(name, st.Mode&0o7777)
		_ = unix.Close(at)
	}
	if fd, err = unix.Open(name, flags&^unix.O_NOFOLLOW, 0); err != nil {
		shut()
		return -1, nil, err
	}
	return fd, shut, nil
}
