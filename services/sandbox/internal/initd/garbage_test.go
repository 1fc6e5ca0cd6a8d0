package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Commands may stop whatever runs as their user, at any moment: also the processes that init
// makes to see whether there is room for them.
func TestInitDoesNotWaitForWhomACommandStopped(t *testing.T) {
	usual := ending
	defer func() { ending = usual }()
	ending = &child{calls: []call{
		{number: unix.SYS_SETSID},
		{number: unix.SYS_KILL, arguments: [4]uintptr{0, uintptr(unix.SIGSTOP)}}, // itself: its group has nobody else
		{number: unix.SYS_EXIT_GROUP},
	}}
	room := make(chan bool, 1)
	go func() { room <- (&starter{commands: map[int]*command{1: {}}}).room() }()
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case enough := <-room:
		if !enough {
			t.Error("there is no room")
		}
	case <-patience.C:
		t.Fatal("it waits for ever")
	}
}
