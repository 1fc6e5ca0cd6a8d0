package main

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	flushRead  = 1
)

// dropInput drops what was typed on a terminal and not read.
func dropInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, flushRead) } // on anything but a terminal there is nothing to drop
