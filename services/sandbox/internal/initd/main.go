// Command initd is the first process of a sandbox. It starts commands at the
// service's request, reaps every process, and tells how commands ended.
//
// It trusts the service alone. Commands run as the same user beside it, so it
// holds nothing that they do not: the same filter, no capability, no file but its
// socket, and its own memory is closed to them. When it ends, for whatever
// reason, the kernel ends everything in the sandbox.
//
// Where the service is elsewhere, init speaks with it over its standard input and
// output (`stream`, see relay), beside a first process that only keeps the sandbox
// open (`pause`); its end is then told by whoever made the sandbox.
//
// One thread starts all commands and holds those that wait before their first
// instruction, for only the thread that started a command may let it go. One
// goroutine reaps.
package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

func init() { runtime.LockOSThread() } // main stays on the first thread

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		os.Exit(1)
	}
}

// link is init's end of its socket.
var link = wire.FD

func run() error {
	words := os.Args[1:]
	if len(words) > 0 && words[0] == "pause" {
		return pause()
	}
	streamed := len(words) > 0 && words[0] == "stream"
	if streamed {
		words = words[1:]
		if err := alone(); err != nil {
			return err
		}
	}
	// Nobody but this process may look into it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close its memory: %w", err)
	}
	if err := unix.CloseRange(wire.FD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep its descriptors from commands: %w", err)
	}
	if err := withstandSignals(); err != nil {
		return err
	}
	if err := confine(words); err != nil {
		return err
	}
	threads := runtime.GOMAXPROCS(0) + moreThreads
	if streamed {
		threads += relayThreads
	}
	makeThreads(threads)
	var long func(packet []byte) ([]byte, error)
	if streamed {
		socket, r, err := startRelay()
		if err != nil {
			return err
		}
		link, long = socket, r.takeLong
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	s := newStarter(wake)
	s.long = long
	go s.reap()
	if err := send(wire.Reply{Kind: wire.Ready}); err != nil {
		return err
	}
	return s.serve()
}

// send tells the service something.
func send(p wire.Reply, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return unix.Sendmsg(link, p.Encode(), rights, nil, unix.MSG_NOSIGNAL)
}
