// Package terminal makes terminals for commands. It is small because init includes it.
package terminal

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Open makes a terminal of the caller's mount namespace. The caller owns both ends.
func Open(rows, columns uint16) (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	if err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err == nil {
		err = Resize(master, rows, columns)
	}
	if err == nil {
		peer, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if e == 0 {
			return master, int(peer), nil
		}
		err = e
	}
	_ = unix.Close(master)
	return -1, -1, err
}

// Resize sets a terminal's size.
func Resize(fd int, rows, columns uint16) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
}

// ResizeFile is Resize for a file. For a closed file it does nothing.
func ResizeFile(f *os.File, rows, columns uint16) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	_ = raw.Control(func(fd uintptr) { err = Resize(int(fd), rows, columns) }) // fails only for closed files
	return err
}

// Input writes to a terminal; Close writes the end-of-file character.
type Input struct {
	*os.File
	begun atomic.Bool // whether a line is incomplete
}

// Write implements io.Writer.
func (t *Input) Write(b []byte) (int, error) {
	n, err := t.File.Write(b)
	if n > 0 {
		t.begun.Store(b[n-1] != '\n' && b[n-1] != '\r')
	}
	return n, err
}

// Close sends an end of file. The terminal stays open. In the middle of a line the character only makes the
// program read the partial line, so two are needed there.
func (t *Input) Close() error {
	end := []byte{4, 4}
	if !t.begun.Load() {
		end = end[1:]
	}
	n, err := t.File.Write(end)
	if n > 0 {
		t.begun.Store(false)
	}
	return err
}

// Output reads from a terminal, whose end is an input/output error.
type Output struct{ *os.File }

// Read implements io.Reader.
func (t Output) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	if errors.Is(err, unix.EIO) {
		err = io.EOF
	}
	return n, err
}
