package main

import (
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// tellTerminals reports how many terminals are open in the sandbox.
func (s *starter) tellTerminals() error {
	s.garbage += commandGarbage
	return send(wire.Reply{Kind: wire.Terminals, ID: countTerminals("/dev/pts")})
}

// countTerminals counts the terminals in a folder; none if it cannot be read.
func countTerminals(folder string) (count uint64) {
	dir, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(dir) }()
	var buffer [4096]byte
	for {
		n, err := unix.ReadDirent(dir, buffer[:])
		if err != nil || n <= 0 {
			return count
		}
		_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			if name != "ptmx" {
				count++
			}
		}
	}
}
