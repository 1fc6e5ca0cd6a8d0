package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastSignal is the highest number of a signal.
const lastSignal = 64

// Flags of an action.
const (
	onStack  = 0x08000000 // Go's stacks have no room for it
	restart  = 0x10000000
	restorer = 0x04000000
)

// withstandSignals has no signal from inside end it. The kernel keeps a first
// process from signals that nobody handles, but not while one of several threads
// has them blocked, as happens at every fork. So all are caught, past the package
// signal: it goes back and forth between threads for each, some milliseconds in
// all.
func withstandSignals() error {
	all := ^uint64(0)
	catch := action{handler: handler(), flags: onStack | restart | restorer, restorer: returner(), mask: all}
	for n := unix.Signal(1); n <= lastSignal; n++ {
		a := catch
		switch n {
		case unix.SIGKILL, unix.SIGSTOP: // nobody can
			continue
		case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV:
			// By these the processor tells of init's own faults, which are Go's to handle: only
			// those that somebody sent are to be unheard.
			if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0); e != 0 { //nolint:gosec // as below
				return fmt.Errorf("look how signal %d is handled: %w", n, e)
			}
			goes, a.handler = a.handler, faultHandler()
		case unix.SIGCHLD:
			a.handler = childHandler()
		case unix.SIGURG, unix.SIGPROF: // Go's own; it takes no harm by them
			continue
		case 32, 33, 34:
			// Go leaves them to C libraries, and there is none here.
			a = action{handler: ignore}
		}
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0); e != 0 { //nolint:gosec // the kernel takes a pointer
			return fmt.Errorf("catch signal %d: %w", n, e)
		}
	}
	return nil
}

// isFixed says whether nothing can be done about a signal. About each of the others init or Go
// does something, which a command must not inherit: a shell cannot trap what was ignored when
// it started.
func isFixed(n unix.Signal) bool { return n == unix.SIGKILL || n == unix.SIGSTOP }

// action is the kernel's description of what is done about a signal.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// ignore is the handler that stands for none.
const ignore = 1

// handler is the address of a signal handler that does nothing.
func handler() uintptr

// bell is an eventfd that is rung when a process has ended or stopped.
var bell int32

// childHandler is the address of a signal handler that rings the bell.
func childHandler() uintptr

// goes is Go's own signal handler, the same for every signal.
var goes uintptr //nolint:unused // the assembler uses it

// faultHandler is the address of a signal handler that does nothing about what
// somebody sent, and leaves the rest to Go's own.
func faultHandler() uintptr

// returner is the address of what a signal handler returns to.
func returner() uintptr
