package main

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// reapAtOnce limits how many processes init reaps before it does other work, such as noticing the service's
// end: commands may fork and exit as fast as init reaps.
const reapAtOnce = 16

// reap waits for the processes that have ended since the last call.
func (s *starter) reap() error {
	var count [8]byte
	_, _ = unix.Read(int(bell), count[:])
	for range reapAtOnce {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOHANG, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD), err == nil && pid == 0:
			return nil
		case err != nil:
			return err // init has lost track of its processes
		}
		if err := s.ended(pid, status, &usage); err != nil {
			return err
		}
	}
	count[0] = 1
	_, err := unix.Write(int(bell), count[:]) // there may be more
	return err
}

// ended handles a process's end. With the last command all other processes end, too.
func (s *starter) ended(pid int, status unix.WaitStatus, usage *unix.Rusage) error {
	c := s.commands[pid]
	if c == nil {
		// Orphans count for the running command, if there is only one.
		if len(s.commands) == 1 {
			for _, only := range s.commands {
				only.add(usage)
			}
		}
		return nil
	}
	c.add(usage)
	delete(s.commands, pid)
	defer c.request.release()
	s.markReported(c)
	swept := len(s.commands) == 0
	if swept {
		sweep(c)
		removeShared()
	}
	closeAll(c.line)
	if err, folder := c.child.fault(); err != nil {
		return send(failed(c.id, err, folder))
	}
	return send(wire.Reply{
		Kind: wire.Exited, ID: c.id, Status: uint32(status), CPU: time.Duration(c.cpu), MaxRSS: c.maxRSS, Swept: swept,
	})
}

func (c *command) add(u *unix.Rusage) {
	c.cpu += unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime)
	c.maxRSS = max(c.maxRSS, u.Maxrss<<10)
}

// sweep kills all other processes in the sandbox and waits for their end. A process that is being killed
// cannot fork.
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
			return // no process is left
		case pid > 0:
			c.add(&usage)
		}
	}
}
