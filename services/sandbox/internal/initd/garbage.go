package main

import "runtime/debug"

// Init collects its garbage itself, when it is not in anybody's way. The runtime would do it
// every two minutes where nothing happens at all, and its first time takes a fifth of a
// megabyte, which a sandbox without commands never needs. Where init carries what is said,
// the runtime collects as well.

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
	if s.garbage >= most {
		s.garbage = 0
		debug.FreeOSMemory()
	}
}
