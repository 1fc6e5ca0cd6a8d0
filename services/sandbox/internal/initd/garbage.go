package main

import (
	"bytes"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Init collects its garbage itself, when it is idle. The runtime would collect every two minutes in an idle
// sandbox. Its first collection takes a fifth of a megabyte, which a sandbox without commands never needs.
// Where init relays the stream, the runtime collects as well.

// Approximate bytes of garbage between two collections, when no command runs and when some do. In the
// second case init waits longer for an idle time: a collection needs threads, and commands may have left no
// room for these.
const (
	idleGarbage  = 1 << 20
	busyGarbage  = 4 << 20
	firstGarbage = 8 << 20
)

// commandGarbage is a command's garbage in bytes, besides the packet that requested it.
const commandGarbage = 8 << 10

// collectByHand turns off the runtime's own collections.
func collectByHand() { debug.SetGCPercent(-1) }

// noteGarbage counts the garbage of a packet. Each string takes two words, and a pointer to it.
func (s *starter) noteGarbage(r request, c *wire.Command) {
	s.garbage += commandGarbage + 32*(len(c.Argv)+len(c.Env))
	if !r.mapped {
		s.garbage += len(r.packet)
	}
}

// collectAttempts limits how often a collection is put off, and collectPause is for how long, in
// milliseconds, unless there is something to do.
const (
	collectAttempts = 16
	collectPause    = 1
)

// collect frees memory if there is enough garbage.
func (s *starter) collect() error {
	if s.garbage < s.mostGarbage() {
		s.putOff = 0
		return nil
	}
	if err := s.haveThreads(collectThreads); err != nil {
		return err
	}
	if s.putOff < collectAttempts && !othersSleep() {
		s.putOff++
		return nil
	}
	s.garbage, s.putOff = 0, 0
	freeMemory()
	return nil
}

func (s *starter) mostGarbage() int {
	switch {
	case len(s.commands) == 0:
		return idleGarbage
	case s.threads >= collectThreads:
		return busyGarbage
	}
	return firstGarbage
}

// freeMemory collects in another goroutine. A collection yields hundreds of times, and this goroutine is
// locked to its thread: each time another thread would take over. If processors are short and that one is
// not idle yet, one more thread would be made.
func freeMemory() {
	done := make(chan struct{})
	go func() {
		debug.FreeOSMemory()
		close(done)
	}()
	<-done
}

// othersSleep reports whether all other threads sleep. A running thread may be about to sleep, and cannot
// take over until it does. No better way to tell is known.
func othersSleep() bool {
	dir, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(dir) }()
	own := strconv.Itoa(unix.Gettid())
	var buffer [1024]byte
	for {
		n, err := unix.ReadDirent(dir, buffer[:])
		if err != nil || n <= 0 {
			return true
		}
		_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			if name != own && !sleeps(dir, name) {
				return false
			}
		}
	}
}

// sleeps reports whether a thread sleeps or has ended.
func sleeps(dir int, name string) bool {
	fd, err := unix.Openat(dir, name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }()
	var stat [128]byte
	n, _ := unix.Read(fd, stat[:])
	_, after, _ := bytes.Cut(stat[:max(n, 0)], []byte(") "))
	return bytes.HasPrefix(after, []byte("S"))
}
