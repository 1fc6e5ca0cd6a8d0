package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Why a file cannot be packed, after its name.
var (
	errClosed  = errors.New("is closed to reading: open it with chmod")
	errShorter = errors.New("became shorter while it was read: try again")
)

// vanished reports whether an error means that a file is gone or has been replaced by something else.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO)
}

// openClosed opens a file for reading. If the service has the same user as the commands, a command may have
// removed the service's permission to read it.
func openClosed(dir int, last string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, last, flags|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EACCES) {
		path, back, lendErr := rights.Lend(dir, last, 0o400)
		if lendErr != nil {
			return nil, lendErr
		}
		fd, err = unix.Open(path, flags, 0)
		back()
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), last), nil
}
