package pool

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// As runs f on a thread with an owner's credentials and then ends the thread. The rest of the process keeps
// its own credentials.
func As(o box.Owner, f func() error) error {
	if o == box.Self {
		return f()
	}
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		answer <- func() error {
			gid, uid := uintptr(o.GID), uintptr(o.UID)
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
				return fmt.Errorf("take group %d: %w", o.GID, e)
			}
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
				return fmt.Errorf("take user %d: %w", o.UID, e)
			}
			return f()
		}()
	}()
	return <-answer
}
