package main

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// ownThreads is how many threads the runtime may need beside main's and its monitor when
// it has one processor: the one that it begins with, which works while main waits, and those
// that take over from either while garbage is collected. relayThreads are for what reads and
// writes the stream and the socket, each processor's, and some to take over from any of them.
const (
	ownThreads   = 3
	relayThreads = 10
)

// threadAttempts bounds how often threads are asked for. Mostly the first does.
const threadAttempts = 20

// makeThreads has the runtime make the threads that it may ever need, while there is
// room for them: it ends the process when it cannot have one, and a command may use up
// the processes that the sandbox is allowed. Threads are not given back. It makes one
// where all that it has wait in the kernel and a goroutine wants to go on.
func makeThreads(n int) error {
	// With a processor for each, none has to wait for the runtime's monitor, which may be late,
	// to take one from another.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n + 1))
	for range threadAttempts {
		if err := waitInKernel(n - 1); err != nil {
			return err
		}
		if made, err := threads(); err != nil || made >= n+2 {
			return err
		}
	}
	return errors.New("its runtime makes no threads")
}

// waitInKernel has goroutines wait in the kernel, until the caller comes to go on.
func waitInKernel(n int) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	began, ended := make(chan struct{}), make(chan struct{}, n)
	for range n {
		go func() {
			began <- struct{}{}
			_, _ = unix.Read(pipe[0], make([]byte, 1))
			ended <- struct{}{}
		}()
		<-began
	}
	err := unix.Close(pipe[1])
	for range n {
		<-ended
	}
	return errors.Join(err, unix.Close(pipe[0]))
}

// threads is how many there are.
func threads() (int, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/task", &st)
	return int(st.Nlink) - 2, err
}
