package main

import (
	"bytes"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Init collects its garbage itself, when it is not in anybody's way. The runtime would do it
// every two minutes where nothing happens at all, and its first time takes a fifth of a
// megabyte, which a sandbox without commands never needs. Where init carries what is said,
// the runtime collects as well.

// About how much becomes garbage between two collections, in bytes, when nothing runs and
// when something does. The first waits longer for a time when nothing does: it takes threads,
// for which what runs may have left no room.
const (
	idleGarbage  = 1 << 20
	busyGarbage  = 4 << 20
	firstGarbage = 8 << 20
)

// commandGarbage is the garbage of a command besides the packet that asked for it, in bytes.
const commandGarbage = 8 << 10

// collectByHand has the runtime leave garbage to init.
func collectByHand() { debug.SetGCPercent(-1) }

// noteGarbage notes that a packet was read. Of each string two words are kept, and where it is.
func (s *starter) noteGarbage(r request, c *wire.Command) {
	s.garbage += commandGarbage + 32*(len(c.Argv)+len(c.Env))
	if !r.mapped {
		s.garbage += len(r.packet)
	}
}

// collectAttempts bounds how often a collection is put off, and collectPause is how long, in
// milliseconds, unless there is something to do.
const (
	collectAttempts = 16
	collectPause    = 1
)

// collect gives memory back if there is enough of it.
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

// freeMemory has another goroutine do it. A collection gives way hundreds of times, and this
// goroutine keeps to its thread: each time another one would take over, and one more where
// processors are short and that is not idle yet when it is to take over again.
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
