package main

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// ownThreads is how many threads the runtime may need beside main's, its monitor, and one
// that makes others, when it has one processor: the one that it begins with, which works
// while main waits, and those that take over from either while garbage is collected.
// relayThreads are for what reads and writes the stream and the socket, each processor's,
// and some to take over from any of them.
const (
	ownThreads   = 3
	relayThreads = 10
)

// threadAttempts bounds how often threads are asked for. Mostly the first does.
const threadAttempts = 20

// makeThreads has the runtime make the threads that it may ever need, while there is
// room for them: it ends the process when it cannot have one, and a command may use up
// the processes that the sandbox is allowed. Threads are not given back.
func makeThreads(n int) error {
	for range threadAttempts {
		occupyThreads(n - 1)
		if made, err := threads(); err != nil || made >= n+3 {
			return err
		}
	}
	return errors.New("its runtime makes no threads")
}

// occupyThreads has goroutines keep a thread each, until all have one. Main goes on by one
// more. That takes less memory than a processor of the runtime for each, and is sooner
// than the runtime's monitor, which may be late, sees that one waits in the kernel.
func occupyThreads(n int) {
	began, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, n)
	for range n {
		go func() {
			runtime.LockOSThread()
			began <- struct{}{}
			<-end
			runtime.UnlockOSThread()
			ended <- struct{}{}
		}()
		<-began
	}
	close(end)
	for range n {
		<-ended
	}
}

// threads is how many there are.
func threads() (int, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/task", &st)
	return int(st.Nlink) - 2, err
}
