package main

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// A command may get a signal as soon as it was said that it was started: its process may
// not have a group of its own yet.
func TestASignalFindsACommandThatHasNoGroupYet(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	theirs, ours := pipe(t)
	fd := int(null.Fd())
	child, err := newChild(&wire.Command{Argv: []string{"/bin/sleep", "5"}, Dir: "/"}, []int{fd, fd, fd}, int(theirs.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	child.calls = child.calls[1:] // as before the first, which makes the group
	pid, err := child.start()
	if err != nil {
		t.Fatal(err)
	}
	s := &starter{commands: map[int]*command{pid: {id: 7, child: child, terminal: none}}}
	if err := s.signal(wire.EncodeSignal(7, uint32(unix.SIGTERM))); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write([]byte{opened}); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	if status.Signal() != unix.SIGTERM {
		t.Errorf("it ended by %v", status.Signal())
	}
}
