package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	flushRead  = 1
)

// DropInput drops what was typed on a terminal and not read.
func DropInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, flushRead) } // on anything but a terminal there is nothing to drop
