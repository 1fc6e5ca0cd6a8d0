package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// How many threads the runtime may need beside main's, its monitor, and another that there is
// once main has waited, when it has one processor. One takes over from either, and one from
// that: ownThreads. A collection of garbage gives way hundreds of times, and one that has given
// way is not idle at once: collectThreads. relayThreads are for what reads and writes the stream
// and the socket, what looks at the processes, each processor's, and some to take over from any of them.
const (
	ownThreads     = 2
	collectThreads = 3
	relayThreads   = 12
)

// threadPauses bounds how long the runtime may take to make threads: it does when its monitor
// sees that one is needed, in less than a millisecond where a processor is free. While the
// sandbox is frozen none counts.
const threadPauses = 100_000

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
//
// As many goroutines wait in the kernel at once, each in a thread.
func makeThreads(n int) error {
	gate, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(gate) }()
	ended := make(chan struct{}, n)
	for range n {
		go func() {
			var b [8]byte
			_, _ = unix.Read(gate, b[:])
			ended <- struct{}{}
		}()
	}
	err = awaitThreads(n + 2)
	open := [8]byte{byte(n)}
	if _, fault := unix.Write(gate, open[:]); fault != nil {
		return fault
	}
	for range n {
		<-ended
	}
	return err
}

// awaitThreads waits until there are so many.
func awaitThreads(n int) error {
	pause := unix.NsecToTimespec(int64(20 * time.Microsecond))
	for range threadPauses {
		runtime.Gosched()
		if made, err := threads(); err != nil || made >= n {
			return err
		}
		_ = unix.Nanosleep(&pause, nil)
	}
	return errors.New("its runtime makes no threads")
}

// threads is how many there are.
func threads() (int, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/task", &st)
	return int(st.Nlink) - 2, err
}
