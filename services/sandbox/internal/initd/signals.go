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

// withstandSignals keeps signals from inside the sandbox from ending init. The kernel shields a first
// process from unhandled signals, but not while one of several threads blocks them, as at every fork. So
// init catches all signals. It does not use package os/signal, which switches threads for each signal and
// takes some milliseconds in all.
func withstandSignals() error {
	all := ^uint64(0)
	catch := action{handler: handler(), flags: onStack | restart | restorer, restorer: returner(), mask: all}
	for n := unix.Signal(1); n <= lastSignal; n++ {
		a := catch
		switch n {
		case unix.SIGKILL, unix.SIGSTOP: // cannot be caught
			continue
		case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV:
			// The processor reports init's own faults with these, and Go handles them. Only signals that a
			// process sent are ignored.
			if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0); e != 0 { //nolint:gosec // as below
				return fmt.Errorf("look how signal %d is handled: %w", n, e)
			}
			goes, a.handler = a.handler, faultHandler()
		case unix.SIGCHLD:
			a.handler = childHandler()
		case unix.SIGURG, unix.SIGPROF: // used by the Go runtime, which tolerates extra ones
			continue
		case 32, 33, 34:
			// Go leaves them to C libraries, and init uses none.
			a = action{handler: ignore}
		}
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0); e != 0 { //nolint:gosec // the kernel takes a pointer
			return fmt.Errorf("catch signal %d: %w", n, e)
		}
	}
	return nil
}

// isFixed reports whether a signal's action cannot be changed. Init or Go handles each of the others, and a
// command must not inherit that: a shell cannot trap a signal that was ignored when it started.
func isFixed(n unix.Signal) bool { return n == unix.SIGKILL || n == unix.SIGSTOP }

// action is the kernel's description of a signal's handling.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// ignore is the handler value that ignores a signal.
const ignore = 1

// handler returns the address of a signal handler that does nothing.
func handler() uintptr

// bell is an eventfd that is rung when a process has ended or stopped.
var bell int32

// childHandler returns the address of a signal handler that rings the bell.
func childHandler() uintptr

// goes is Go's own signal handler, the same for every signal.
var goes uintptr //nolint:unused // the assembler uses it

// faultHandler returns the address of a signal handler that ignores signals sent by processes and leaves
// faults to Go's own handler.
func faultHandler() uintptr

// returner returns the address that a signal handler returns to.
func returner() uintptr
