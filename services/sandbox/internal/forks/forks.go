// Package forks knows of the moment in which a process that the service starts still has a copy of
// every descriptor of the service: until it executes its program, which closes them.
//
// The kernel executes no file that anybody has open for writing (ETXTBSY). A program that was
// just written and closed could so be refused because of a process that has nothing to do with it.
package forks

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long the files of one change are waited for together. The last microseconds of a start last as long as
// others have the processor: beside ten busy processes some lasted more than 10 ms, and none of two thousand as long as this.
const Patience = 220 * time.Millisecond

const pause = 50 * time.Microsecond

// unleased are file systems across a network, which answer that somebody writes whenever they have no word of their server.
var unleased = []int64{unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC}

// Await waits until no process has a file open that was written and closed before, which nobody else
// can have open: at most for as long as processes that are being started take to execute their programs, which
// is below a millisecond where a processor is free, and at most for Patience besides. The file is open for reading.
//
// Go holds syscall.ForkLock from the fork until the child's execve has the new program's memory, and the
// descriptors are closed after that. That all of them are is said by a lease, which the kernel grants to who
// reads what nobody has open for writing. Where there are none (fcntl(2): of file systems that have
// none, of files of others without CAP_LEASE) that moment is not waited for.
func Await(f *os.File) { Begin().await(f, func() bool { return false }) }

// Wait is Await for several files, all of which were closed before it began, and which are waited for together.
type Wait struct{ end time.Time }

// Begin waits for what has not come to the last microseconds yet.
func Begin() Wait {
	syscall.ForkLock.RLock()
	syscall.ForkLock.RUnlock() //nolint:staticcheck // nothing is done under it: that those before are through is all
	return Wait{time.Now().Add(Patience)}
}

// Over says that there is no time left to wait for further files.
func (w Wait) Over() bool { return !time.Now().Before(w.end) }

// Await waits for one of the files; the context ends it.
func (w Wait) Await(ctx context.Context, f *os.File) {
	w.await(f, func() bool { return ctx.Err() != nil })
}

// await waits for one of the files, unless it is called off.
func (w Wait) await(f *os.File, off func() bool) {
	for tried := false; ; tried = true {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) || off() || w.Over() || !tried && !leased(f) {
			return
		}
		time.Sleep(pause) //nolint:forbidigo // nobody is told when it is over
	}
}

// leased says whether a file's system knows who has it open.
func leased(f *os.File) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &fs)
	return err == nil && !slices.Contains(unleased, fs.Type)
}
