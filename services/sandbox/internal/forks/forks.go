// Package forks knows of the moment in which a process that the service starts still has a copy of
// every descriptor of the service: until it executes its program, which closes them.
//
// The kernel executes no file that anybody has open for writing (ETXTBSY). A program that was
// just written and closed could so be refused because of a process that has nothing to do with it.
package forks

import "syscall"

// Await waits until no process has copies of descriptors that were closed before: at most for as
// long as processes that are being started at the moment take to execute their programs, which is
// below a millisecond.
//
// Go holds syscall.ForkLock from the fork until the child's execve has the new program's memory,
// microseconds before it closes descriptors. For a child in a user namespace of its own (package bind) it holds it only until the
// child may go on to execve.
func Await() {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock() // nothing is done under it: that those before are through is all
}
