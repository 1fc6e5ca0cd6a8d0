// Package forks knows of the moment in which a process that the service starts still has a copy of
// every descriptor of the service: until it executes its program, which closes them.
//
// The kernel executes no file that anybody has open for writing (ETXTBSY). A program that was
// just written and closed could so be refused because of a process that has nothing to do with it.
package forks

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The last microseconds of a start are longer when all processors are busy. Some file systems answer that somebody
// writes whenever they cannot tell (NFS): there each file waits for all of it.
const (
	tries = 200
	pause = 50 * time.Microsecond
)

// Await waits until no process has a file open that was written and closed before, which nobody else
// can have open: at most for as long as processes that are being started take to execute their programs, which
// is below a millisecond. The file is open for reading.
//
// Go holds syscall.ForkLock from the fork until the child's execve has the new program's memory, and the
// descriptors are closed after that. That all of them are is said by a lease, which the kernel grants to who
// reads what nobody has open for writing. Where there are none (fcntl(2): of file systems that have
// none, of files of others without CAP_LEASE) that moment is not waited for.
func Await(f *os.File) {
	syscall.ForkLock.RLock()
	syscall.ForkLock.RUnlock() //nolint:staticcheck // nothing is done under it: that those before are through is all
	for range tries {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(pause) //nolint:forbidigo // nobody is told when it is over
	}
}
