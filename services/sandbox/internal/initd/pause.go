package main

import (
	"errors"
	"os"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// visitTimeout is how long a sandbox stays open without a service.
const visitTimeout = 2 * time.Minute

// hearing is the name of a process that keeps a sandbox open, once it handles signals.
const hearing = "hearing"

// pause keeps a sandbox open as its first process; init then runs beside it. It ends when init tells it to,
// or when no init comes, and all other processes end with it. words are as for confine.
func pause(words []string) error {
	if os.Getpid() != 1 {
		return errors.New("`pause` is for the first process of a sandbox")
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := confine(words); err != nil {
		return err
	}
	heard := make(chan os.Signal, 64)
	signal.Notify(heard)
	name := append([]byte(hearing), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil { //nolint:gosec // it is read; main is on the first thread
		return err
	}
	late := time.NewTimer(visitTimeout)
	for {
		select {
		case <-late.C:
			return errors.New("no service came")
		case s := <-heard:
			switch s {
			case unix.SIGTERM:
				return nil
			case unix.SIGUSR1:
				late.Stop()
			case unix.SIGCHLD:
				reapAll()
			}
		}
	}
}

// reapAll reaps the processes that have ended: the children of an init that crashed.
func reapAll() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
