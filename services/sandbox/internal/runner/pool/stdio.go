package pool

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// stdio is both ends of a command's standard streams.
type stdio struct {
	null                        *os.File       // the runner's
	childIn, childOut, childErr int            // none if missing
	in                          io.WriteCloser // nil for none
	out, errOut                 io.ReadCloser  // errOut is nil on a terminal
	terminal                    *os.File       // nil for none
}

// none means no descriptor.
const none = -1

// null is /dev/null, which commands without input read; it stays the runner's.
func newStdio(c box.Command, null *os.File) (*stdio, error) {
	s := &stdio{null: null, childIn: none, childOut: none, childErr: none}
	if err := s.open(c); err != nil {
		s.closeChild()
		s.closeOurs()
		return nil, err
	}
	return s, nil
}

func (s *stdio) open(c box.Command) error {
	if c.Terminal != nil {
		return nil // init makes it from the sandbox's own
	}
	if err := s.openInput(c); err != nil {
		return err
	}
	var err error
	if s.out, s.childOut, err = outputOf(c.Sandbox.Owner); err != nil {
		return err
	}
	s.errOut, s.childErr, err = outputOf(c.Sandbox.Owner)
	return err
}

// outputOf makes a pipe for output. The command's end belongs to its owner, so that the command can reopen
// its standard streams by their names in /dev and /proc. Only our end is non-blocking.
func outputOf(o box.Owner) (ours io.ReadCloser, child int, err error) {
	ends := [2]int{none, none}
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, none, os.NewSyscallError("pipe2", err)
	}
	if o != box.Self {
		err = unix.Fchown(ends[1], o.UID, o.GID)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(ends[0]), unix.F_SETFL, unix.O_NONBLOCK)
	}
	if err != nil {
		return nil, none, errors.Join(err, unix.Close(ends[0]), unix.Close(ends[1]))
	}
	return &output{fd: ends[0]}, ends[1], nil
}

// output is a command's output. The pipe is added to the runtime's poller only when a read must wait: most
// commands have ended before.
type output struct {
	wide bool

	mu   sync.Mutex // guards what follows
	fd   int        // none once the file owns it or it is closed
	file *os.File   // nil before
}

// usualPipe is the default capacity of a pipe.
const usualPipe = 64 << 10

// Read implements io.Reader. It enlarges the pipe once that was full.
func (o *output) Read(b []byte) (int, error) {
	n, file, err := o.tryRead(b)
	if file != nil {
		n, err = file.Read(b)
	}
	if n >= usualPipe && !o.wide {
		o.wide = true
		o.widen()
	}
	return n, err
}

// ReadNow is Read, but returns wait instead of waiting.
func (o *output) ReadNow(b []byte) (n int, wait bool, err error) {
	n, file, err := o.tryRead(b)
	return n, file != nil, err
}

// tryRead reads the available output, or returns the file to wait with.
func (o *output) tryRead(b []byte) (n int, wait *os.File, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		return 0, o.file, nil
	}
	if o.fd == none {
		return 0, nil, os.ErrClosed
	}
	n, err = unix.Read(o.fd, b)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		o.file, o.fd = os.NewFile(uintptr(o.fd), "output"), none
		return 0, o.file, nil
	case err != nil:
		return 0, nil, os.NewSyscallError("read", err)
	case n == 0:
		return 0, nil, io.EOF
	}
	return n, nil, nil
}

// Close implements io.Closer. It ends a Read.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		return o.file.Close()
	}
	if o.fd == none {
		return os.ErrClosed
	}
	fd := o.fd
	o.fd = none
	return unix.Close(fd)
}

// outputPipe is how far a command may be ahead of the service. With the default of 64 KiB, much output
// makes the two wait for each other all the time.
const outputPipe = 256 << 10

// widen enlarges the pipe, as far as the kernel permits.
func (o *output) widen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		_, _ = unix.FcntlInt(uintptr(o.fd), unix.F_SETPIPE_SZ, outputPipe)
		return
	}
	if raw, err := o.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, outputPipe) })
	}
}

func (s *stdio) openInput(c box.Command) error {
	if !c.Stdin {
		s.childIn = int(s.null.Fd())
		return nil
	}
	ends := [2]int{none, none}
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	s.childIn = ends[0]
	err := unix.SetNonblock(ends[1], true)
	s.in = os.NewFile(uintptr(ends[1]), "input")
	if err == nil && c.Sandbox.Owner != box.Self {
		err = unix.Fchown(s.childIn, c.Sandbox.Owner.UID, c.Sandbox.Owner.GID)
	}
	return err
}

// setTerminal takes over the terminal that init made.
func (s *stdio) setTerminal(master *os.File) {
	s.terminal, s.in, s.out = master, &terminal.Input{File: master}, terminal.Output{File: master}
}

// child returns the ends to pass on: none for a terminal.
func (s *stdio) child() []int {
	if s.childIn == none {
		return nil
	}
	return []int{s.childIn, s.childOut, s.childErr}
}

// closeChild closes the ends that only the command needs: while one is open here, its output does not end.
func (s *stdio) closeChild() {
	for _, fd := range []*int{&s.childIn, &s.childOut, &s.childErr} {
		if *fd != none && *fd != int(s.null.Fd()) {
			_ = unix.Close(*fd)
		}
		*fd = none
	}
}

func (s *stdio) closeOurs() {
	for _, c := range []io.Closer{s.in, s.out, s.errOut} {
		if c != nil {
			_ = c.Close()
		}
	}
}
