package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
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
