package warm

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// stdio are both ends of a command's standard streams.
type stdio struct {
	null                        *os.File // the runner's
	childIn, childOut, childErr *os.File
	in                          io.WriteCloser // nil for none
	out, errOut                 io.ReadCloser  // errOut is nil on a terminal
	terminal                    *os.File       // nil for none
}

// null is /dev/null, which commands without input read; it stays the runner's.
func newStdio(c box.Command, null *os.File) (*stdio, error) {
	s := &stdio{null: null}
	if err := s.open(c); err != nil {
		s.closeChild()
		s.closeOurs()
		return nil, err
	}
	return s, nil
}

func (s *stdio) open(c box.Command) error {
	if c.Terminal != nil {
		return nil // init makes it, of the sandbox's own
	}
	if err := s.openInput(c); err != nil {
		return err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return err
	}
	s.out, s.childOut = out, childOut
	errOut, childErr, err := os.Pipe()
	if err != nil {
		return err
	}
	s.errOut, s.childErr = errOut, childErr
	widen(out)
	return give(c.Sandbox.Owner, childOut, childErr)
}

// outputPipe is how much output a command may be ahead of the service. The usual
// 64 KiB have the two wait for each other all the time when there is much.
const outputPipe = 256 << 10

// widen makes a pipe larger. Where the kernel grants no more, it stays as it is.
func widen(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, outputPipe) })
}

func (s *stdio) openInput(c box.Command) error {
	if !c.Stdin {
		s.childIn = s.null
		return nil
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	s.childIn, s.in = childIn, in
	return give(c.Sandbox.Owner, childIn)
}

// setTerminal takes the terminal that init made.
func (s *stdio) setTerminal(master *os.File) {
	s.terminal, s.in, s.out = master, terminal.Input{File: master}, terminal.Output{File: master}
}

// give makes files an owner's, so that a command can open its own standard
// streams again by their names in /dev and /proc.
func give(o box.Owner, files ...*os.File) error {
	if o == box.Self {
		return nil
	}
	for _, f := range files {
		if err := f.Chown(o.UID, o.GID); err != nil {
			return err
		}
	}
	return nil
}

// child are the ends to hand over: none for a terminal.
func (s *stdio) child() []*os.File {
	if s.childIn == nil {
		return nil
	}
	return []*os.File{s.childIn, s.childOut, s.childErr}
}

// closeChild closes the ends that only the command needs: as long as one is open
// here, its output has no end.
func (s *stdio) closeChild() {
	for _, f := range []*os.File{s.childIn, s.childOut, s.childErr} {
		if f != nil && f != s.null {
			_ = f.Close()
		}
	}
	s.childIn, s.childOut, s.childErr = nil, nil, nil
}

func (s *stdio) closeOurs() {
	for _, c := range []io.Closer{s.in, s.out, s.errOut} {
		if c != nil {
			_ = c.Close()
		}
	}
}
