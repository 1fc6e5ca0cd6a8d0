package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// How many threads the runtime may need beside main's, its monitor, and another that is there
// from the beginning, when it has one processor. One takes over while main waits: ownThreads.
// A collection of garbage gives way hundreds of times, and one that has given way is not idle
// at once: collectThreads. relayThreads are for what reads and writes the stream and the
// socket, each processor's, and some to take over from any of them.
const (
	ownThreads     = 1
	collectThreads = 3
	relayThreads   = 10
)

// threadAttempts bounds how often threads are asked for. Mostly the first does.
const threadAttempts = 20

// haveThreads has the runtime have threads, unless it has as many.
func (s *starter) haveThreads(n int) error {
	if s.threads >= n {
		return nil
	}
	if err := makeThreads(n); err != nil {
		return fmt.Errorf("make its threads: %w", err)
	}
	s.threads = n
	return nil
}

// makeThreads has the runtime make threads before it needs them, while there is room for
// them: it ends the process when it cannot have one, and a command may use up the processes
// that the sandbox is allowed. Threads are not given back.
func makeThreads(n int) error {
	for range threadAttempts {
		if err := occupyThreads(n); err != nil {
			return err
		}
		if made, err := threads(); err != nil || made >= n+3 {
			return err
		}
	}
	return errors.New("its runtime makes no threads")
}

// occupyThreads has goroutines wait in the kernel until the runtime's monitor has given the
// processor to another thread for each.
func occupyThreads(n int) error {
	gate, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(gate) }()
	began, ended := make(chan struct{}), make(chan struct{}, n)
	for range n {
		go func() {
			began <- struct{}{}
			var b [8]byte
			_, _ = unix.Read(gate, b[:])
			ended <- struct{}{}
		}()
	}
	for range n {
		<-began
	}
	open := [8]byte{byte(n)}
	_, err = unix.Write(gate, open[:])
	for range n {
		<-ended
	}
	return err
}

// threads is how many there are.
func threads() (int, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/task", &st)
	return int(st.Nlink) - 2, err
}
