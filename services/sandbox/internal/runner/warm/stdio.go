package warm

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// stdio are both ends of a command's standard streams.
type stdio struct {
	null                        *os.File       // the runner's
	childIn, childOut, childErr int            // none: not there
	in                          io.WriteCloser // nil for none
	out, errOut                 io.ReadCloser  // errOut is nil on a terminal
	terminal                    *os.File       // nil for none
}

// none stands for no descriptor.
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
		return nil // init makes it, of the sandbox's own
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

// outputOf makes a pipe for output, whose one end is an owner's, so that a command can
// open its own standard streams again by their names in /dev and /proc. Only our end never
// blocks.
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

// output is what a command writes. The runtime's poller learns of the pipe when there is
// something to wait for: mostly a command has ended before.
type output struct {
	wide bool

	mu   sync.Mutex // guards what follows
	fd   int        // none once it is the file's, or closed
	file *os.File   // nil before
}

// usualPipe is how much a pipe holds.
const usualPipe = 64 << 10

// Read implements io.Reader. The pipe becomes larger once it was full.
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

// ReadNow is Read, but for saying that it would wait.
func (o *output) ReadNow(b []byte) (n int, wait bool, err error) {
	n, file, err := o.tryRead(b)
	return n, file != nil, err
}

// tryRead reads what there is, or answers the file to wait with.
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

// outputPipe is how much output a command may be ahead of the service. The usual
// 64 KiB have the two wait for each other all the time when there is much.
const outputPipe = 256 << 10

// widen makes the pipe larger. Where the kernel grants no more, it stays as it is.
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

// setTerminal takes the terminal that init made.
func (s *stdio) setTerminal(master *os.File) {
	s.terminal, s.in, s.out = master, &terminal.Input{File: master}, terminal.Output{File: master}
}

// child are the ends to hand over: none for a terminal.
func (s *stdio) child() []int {
	if s.childIn == none {
		return nil
	}
	return []int{s.childIn, s.childOut, s.childErr}
}

// closeChild closes the ends that only the command needs: as long as one is open
// here, its output has no end.
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
