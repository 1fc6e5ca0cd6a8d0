package bubblewrap

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// spawner runs functions, forks above all, on one operating system thread that
// lives as long as it does. The kernel's death signal, by which nothing outlives
// this service, is sent when the *thread* that forked ends, and Go ends threads as
// it likes. The thread may also have a mount namespace of its own, see stage.
type spawner struct {
	jobs chan func()
	done chan struct{}
	once sync.Once
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread may not be used for anything else
	for f := range s.jobs {
		f()
	}
}

// do runs f on the thread. It must not be called after close.
func (s *spawner) do(f func() error) error {
	answer := make(chan error, 1)
	s.jobs <- func() { answer <- f() }
	return <-answer
}

// close ends the thread, and with it whatever still runs.
func (s *spawner) close() {
	s.once.Do(func() { close(s.jobs) })
	<-s.done
}

// as runs f on a thread whose credentials are an owner's, and ends the thread.
// Only that thread changes: the rest of the process keeps its own.
func as(o box.Owner, f func() error) error {
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
