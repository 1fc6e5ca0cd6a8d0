package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Suspend stops the server and the processes of its connections where they are, as a machine does that hangs, until
// Resume. Connections stay open and nobody answers. Neither may run at the same time as another method.
func (s *Server) Suspend() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // from here on it starts no others
		return err
	}
	return s.signalChildren(syscall.SIGSTOP)
}

// Resume lets a server go on that was suspended.
func (s *Server) Resume() error {
	return errors.Join(s.signalChildren(syscall.SIGCONT), s.cmd.Process.Signal(syscall.SIGCONT))
}

// signalChildren signals every child of the server's first process. They are in process groups of their own.
func (s *Server) signalChildren(signal syscall.Signal) error {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.PID()))
	if err != nil {
		return err
	}
	var errs error
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err == nil {
				err = syscall.Kill(pid, signal)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) { // it ended meanwhile
				errs = errors.Join(errs, fmt.Errorf("send %v to process %s: %w", signal, child, err))
			}
		}
	}
	return errs
}
