package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// reap waits for every process of the sandbox, for good.
func (s *starter) reap() {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WALL, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			s.awaitCommand()
		case err != nil:
			os.Exit(1) // nothing can be known any more
		case status.Stopped():
			s.stopped(pid, status.StopSignal())
		default:
			s.ended(pid, status, &usage)
		}
	}
}

// awaitCommand waits until a command runs.
func (s *starter) awaitCommand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.commands) == 0 {
		s.changed.Wait()
	}
}

// stopped notes that a process stopped that is traced. One that is to go on at once is
// left to the thread that traces it.
func (s *starter) stopped(pid int, signal unix.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.commands[pid]; c != nil && c.fresh {
		c.fresh = false
		if c.hold {
			c.stopped = true
			return
		}
		signal = 0 // its start stopped it, and nothing else
	}
	s.stops = append(s.stops, stop{pid, signal})
	s.ring()
}

func (s *starter) ring() { _, _ = unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// ended notes a process's end. With the last command everything else ends, too.
func (s *starter) ended(pid int, status unix.WaitStatus, usage *unix.Rusage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commands[pid]
	if c == nil {
		// Orphans count for the command that runs, when there is one alone.
		if len(s.commands) == 1 {
			for _, only := range s.commands {
				only.add(usage)
			}
		}
		return
	}
	c.add(usage)
	delete(s.commands, pid)
	swept := len(s.commands) == 0
	if swept {
		sweep(c)
		removeShared()
	}
	p := wire.Reply{
		Kind: wire.Exited, ID: c.id, Status: uint32(status), CPU: time.Duration(c.cpu), MaxRSS: c.maxRSS, Swept: swept,
	}
	if send(p) != nil {
		os.Exit(1) // the service is gone
	}
}

func (c *command) add(u *unix.Rusage) {
	c.cpu += unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime)
	c.maxRSS = max(c.maxRSS, u.Maxrss<<10)
}

// sweep kills everything that is left in the sandbox and waits for its end. The
// kernel keeps whoever is being killed from making another process.
func sweep(c *command) {
	if errors.Is(unix.Kill(-1, unix.SIGKILL), unix.ESRCH) {
		return
	}
	for {
		var usage unix.Rusage
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return // none is left
		case pid > 0 && !status.Stopped():
			c.add(&usage)
		}
	}
}
