package pool

import (
	"os"

	"golang.org/x/sys/unix"
)

// gate keeps the process of a command from executing it until the gate is opened. If the gate is closed
// unopened, also by the end of this program, the process ends.
type gate struct{ fd int }

// newGate makes a gate, and the end at which the process waits. Unless wanted is set, it makes none.
func newGate(wanted bool) (g *gate, theirs []int, err error) {
	if !wanted {
		return &gate{none}, nil, nil
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return &gate{ends[1]}, ends[:1], nil
}

// open lets the process through. A process that has ended needs no gate.
func (g *gate) open() error {
	if _, err := unix.Write(g.fd, []byte{1}); err != nil && err != unix.EPIPE {
		return os.NewSyscallError("open a command's gate", err)
	}
	return nil
}

func (g *gate) close() {
	if g.fd != none {
		_ = unix.Close(g.fd)
		g.fd = none
	}
}
