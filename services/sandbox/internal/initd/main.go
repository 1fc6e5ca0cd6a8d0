// Command initd is the first process of a sandbox. It starts commands at the service's request, reaps all
// processes, and reports how commands ended.
//
// Initd trusts only the service. Commands run beside it as the same user, so it holds nothing that they
// lack: it has the same filter, no capability and no file but its socket. Its own memory is closed to them.
// When initd ends, for whatever reason, the kernel ends all processes in the sandbox.
//
// If the service is elsewhere, initd speaks with it over standard input and output (`stream`, see relay).
// The first process is then a program that only keeps the sandbox open (`pause`), and the maker of the
// sandbox reports its end.
//
// A single thread starts all commands and reaps processes. It waits for the service and for processes at
// the same time.
package main

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// All of init's work happens before main: there the runtime stays on the first thread by itself.
// LockOSThread would make one more thread in every sandbox.
func init() {
	if work != nil {
		work()
	}
}

// work is nil in tests.
var work = begin

func main() {}

func begin() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// usualSlack is the timer slack, in nanoseconds, that the kernel gives to the first process and so to all
// others: prctl(2), PR_SET_TIMERSLACK.
const usualSlack = 50_000

// shortName is the name in lists of processes, which is otherwise a number: prctl(2), PR_SET_NAME.
var shortName = []byte("fairlead-init\x00")

// link is init's end of its socket.
var link = wire.FD

func run() error {
	// This thread starts the commands, which inherit its timer slack. The maker of the sandbox may have set
	// another one. Not every kernel supports timer slack.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("have the usual timer slack: %w", err)
	}
	words := os.Args[1:]
	if len(words) > 0 && words[0] == "pause" {
		return pause(words[1:])
	}
	streamed := len(words) > 0 && words[0] == "stream"
	if streamed {
		words = words[1:]
		if err := alone(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&shortName[0])), 0, 0, 0); err != nil { //nolint:gosec // the kernel takes a pointer
		return fmt.Errorf("set its name: %w", err)
	}
	// Close this process's memory to other processes.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close its memory: %w", err)
	}
	if err := unix.CloseRange(wire.FD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep its descriptors from commands: %w", err)
	}
	rung, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	bell = int32(rung)
	if !streamed {
		collectByHand()
	}
	if err := withstandSignals(); err != nil {
		return err
	}
	if err := confine(words); err != nil {
		return err
	}
	var long func(packet []byte) ([]byte, error)
	if streamed {
		socket, r, err := startRelay()
		if err != nil {
			return err
		}
		link, long = socket, r.takeLong
	}
	// From here on the end of the socket shows the end of the service. The process that made the sandbox is
	// no longer needed, so its end must not end init.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("outlive its parent process: %w", err)
	}
	s := &starter{long: long, commands: map[int]*command{}}
	if err := send(wire.Reply{Kind: wire.Ready}); err != nil {
		return err
	}
	if streamed { // before the first command; nothing waits for it
		if err := s.haveThreads(relayThreads); err != nil {
			return err
		}
	}
	return s.serve()
}

// send sends a reply to the service.
func send(p wire.Reply, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return unix.Sendmsg(link, p.Encode(), rights, nil, unix.MSG_NOSIGNAL)
}
