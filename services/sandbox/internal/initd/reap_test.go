package main

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Commands may have processes end for as long as init waits for them: it looks for other
// things in between, and comes back by itself.
func TestInitDoesNotReapForEver(t *testing.T) {
	rung, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	before := bell
	bell = int32(rung)
	defer func() { bell, _ = before, unix.Close(rung) }()
	const more = 3
	for range reapAtOnce + more {
		pid, err := (&child{calls: []call{{number: unix.SYS_EXIT_GROUP}}}).start()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := &starter{}
	if err := s.reap(); err != nil {
		t.Fatal(err)
	}
	poll := []unix.PollFd{{Fd: bell, Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, 0); err != nil || n != 1 {
		t.Errorf("it would not come back: %d, %v", n, err)
	}
	left := 0
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			break
		}
		left++
	}
	if left != more {
		t.Errorf("%d are left for later, not %d", left, more)
	}
}
