// Package forks handles the moment in which a new process of the service still has a copy of every
// descriptor, until it executes its program, which closes them.
//
// The kernel does not execute a file that is open for writing in any process (ETXTBSY). So an unrelated new
// process could make a just written and closed program fail.
package forks

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience limits the wait for one file. The last microseconds of a start take as long as other processes
	// hold the processor: beside ten busy processes some took more than 10 ms, and none of two thousand took
	// this long. Some network file systems always report a writer.
	patience = 220 * time.Millisecond
	pause    = 50 * time.Microsecond
)

// Await waits until no process has a file open for writing, and reports whether that is so. The file was
// written and closed before, so only processes that are being started can still have it open. f is open for
// reading.
//
// Go holds syscall.ForkLock from the fork until the child executes its program, and the kernel closes the
// child's descriptors just after that. A lease shows that they are closed: the kernel grants it to a reader
// if the file is not open for writing. Where there are no leases, Await does not wait for that moment.
func Await(f *os.File) bool {
	syscall.ForkLock.RLock()
	syscall.ForkLock.RUnlock() //nolint:staticcheck // nothing is done under it: that those before are through is all
	for end := time.Now().Add(patience); time.Now().Before(end); {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return true
		}
		time.Sleep(pause) //nolint:forbidigo // no event signals its end
	}
	return false
}
