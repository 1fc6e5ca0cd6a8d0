// Package forks handles the moment in which a new process of the service still has a copy of every
// descriptor, until it executes its program, which closes them.
//
// The kernel does not execute a file that is open for writing in any process (ETXTBSY). So an unrelated new
// process could make a just written and closed program fail.
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

// Patience limits the common wait for the files of one change. The last microseconds of a start take as
// long as other processes hold the processor: beside ten busy processes some took more than 10 ms, and none
// of two thousand took this long.
const Patience = 220 * time.Millisecond

const pause = 50 * time.Microsecond

// unleased are network file systems, which report a writer whenever they lack their server's word.
var unleased = []int64{unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC}

// Await waits until no process has a file open for writing. The file was written and closed before, so only
// processes that are being started can still have it open. Await waits as long as these take to execute
// their programs, below a millisecond on a free processor, and at most Patience after that. f is open for
// reading.
//
// Go holds syscall.ForkLock from the fork until the child's execve has the new program's memory. The kernel
// closes the descriptors after that. A lease shows that they are closed: the kernel grants it to a reader
// if the file is not open for writing. Where leases are unavailable (fcntl(2): on some file systems, and on
// files of others without CAP_LEASE) Await does not wait for that moment.
func Await(f *os.File) { Begin().await(f, func() bool { return false }) }

// Wait is Await for several files, all closed before it began, with one common time limit.
type Wait struct{ end time.Time }

// Begin waits for the forks in progress, up to their last microseconds.
func Begin() Wait {
	syscall.ForkLock.RLock()
	syscall.ForkLock.RUnlock() //nolint:staticcheck // nothing is done under it: that those before are through is all
	return Wait{time.Now().Add(Patience)}
}

// Over reports whether no time is left to wait for further files.
func (w Wait) Over() bool { return !time.Now().Before(w.end) }

// Await waits for one of the files, or until the context ends.
func (w Wait) Await(ctx context.Context, f *os.File) {
	w.await(f, func() bool { return ctx.Err() != nil })
}

// await waits for one of the files until off returns true.
func (w Wait) await(f *os.File, off func() bool) {
	for tried := false; ; tried = true {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) || off() || w.Over() || !tried && !leased(f) {
			return
		}
		time.Sleep(pause) //nolint:forbidigo // no event signals its end
	}
}

// leased reports whether a file's system knows which processes have it open.
func leased(f *os.File) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &fs)
	return err == nil && !slices.Contains(unleased, fs.Type)
}
