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

// Suspend stops the server and the processes of its connections until Resume, like a machine that hangs.
// Connections stay open and get no answer. Neither method may run concurrently with another.
func (s *Server) Suspend() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // it starts no processes from here on
		return err
	}
	return s.signalChildren(syscall.SIGSTOP)
}

// Resume continues a suspended server.
func (s *Server) Resume() error {
	return errors.Join(s.signalChildren(syscall.SIGCONT), s.cmd.Process.Signal(syscall.SIGCONT))
}

// signalChildren signals every child of the server's first process. The children are in process groups of
// their own.
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
