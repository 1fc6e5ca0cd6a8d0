package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// How many threads the runtime may need besides main's, its monitor, and the one that exists once main has
// waited, on one processor. One more may take over from each of these, and one from that: ownThreads. A
// collection yields hundreds of times, and a thread that has yielded is not idle at once: collectThreads.
// relayThreads serve the stream and the socket, inspect the processes, serve each processor, and take over
// from any of these.
const (
	ownThreads     = 2
	collectThreads = 3
	relayThreads   = 12
)

// threadPauses limits how long the runtime may take to make threads. It makes one when its monitor sees the
// need, in less than a millisecond on a free processor. Time while the sandbox is frozen does not count.
const threadPauses = 100_000

// haveThreads makes the runtime have at least n threads.
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

// makeThreads makes the runtime create threads in advance, while there is room. The runtime ends the
// process if it cannot create one, and a command may use up the sandbox's processes. Threads are not
// released.
//
// n goroutines wait in the kernel at once, each in its own thread. Meanwhile each may have a processor. With one for all,
// each would wait for the runtime's monitor, which may sleep for 20 ms, to take it from the one before.
func makeThreads(n int) error {
	gate, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(gate) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n + 1))
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

// awaitThreads waits until there are n threads.
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

// threads returns the number of threads.
func threads() (int, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/task", &st)
	return int(st.Nlink) - 2, err
}
