package main

import (
	"errors"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Init collects its garbage itself, when it is not in anybody's way. The runtime would do it
// every two minutes where nothing happens at all, and its first time takes a fifth of a
// megabyte, which most sandboxes never need. And it makes threads for it: it ends the process
// when it cannot have one, as where a command has used up the processes that the sandbox is
// allowed. Where init carries what is said, with threads enough, the runtime collects as well.

// About how much becomes garbage between two collections, in bytes, when nothing runs and
// when something does.
const (
	idleGarbage = 1 << 20
	busyGarbage = 4 << 20
)

// Garbage of a command: so many bytes, and the packet that asked for it so many times.
const (
	commandGarbage = 8 << 10
	packetGarbage  = 4
)

// collectByHand has the runtime leave garbage to init.
func collectByHand() { debug.SetGCPercent(-1) }

// noteGarbage notes that a packet was read.
func (s *starter) noteGarbage(packet []byte) {
	s.garbage += commandGarbage + packetGarbage*len(packet)
}

// collect gives memory back if there is enough of it.
func (s *starter) collect() {
	most := idleGarbage
	if len(s.commands) > 0 {
		most = busyGarbage
	}
	if s.garbage < most {
		return
	}
	if !s.room() {
		s.garbage = most / 2 // a while later
		return
	}
	s.garbage = 0
	debug.FreeOSMemory()
}

// collectThreads is how many threads the runtime may make when it collects for the first time.
const collectThreads = 2

// room says whether the sandbox may have as many processes more. It has them made, and ends
// them: one that a command has stopped would not end by itself.
func (s *starter) room() bool {
	if len(s.commands) == 0 {
		return true
	}
	var made [collectThreads]int
	enough := true
	for i := range made {
		pid, err := ending.start()
		made[i], enough = pid, enough && err == nil
	}
	for _, pid := range made {
		if pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL) // nobody else's number: it was not waited for
		}
		for pid > 0 {
			if _, err := unix.Wait4(pid, nil, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	return enough
}

// ending is a process that does nothing.
var ending = &child{calls: []call{{number: unix.SYS_EXIT_GROUP}}}
