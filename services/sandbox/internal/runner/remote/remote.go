// Package remote connects the socket of package pool to a remote init over a pair of byte streams. It
// carries the contents of files that the messages pass.
package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// pingEvery is how often init gets a ping while the stream is idle.
const pingEvery = 30 * time.Second

// Link is a socket connected to a stream.
type Link struct {
	socket *net.UnixConn // init's end
	mux    *stream.Mux
	outlet *outlet

	mu        sync.Mutex // guards what follows
	terminals map[uint64]bool
}

// Join makes a link. The caller keeps the socket and must call Run.
func Join(socket *os.File, r io.Reader, w io.Writer) (*Link, error) {
	c, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	l := &Link{socket: c.(*net.UnixConn), terminals: map[uint64]bool{}}
	l.outlet = newOutlet()
	l.mux = stream.New(stream.Options{Read: r, Write: w, MaxPacket: wire.MaxReply, Packet: l.reply})
	return l, nil
}

// Run carries all data until the stream ends or either side fails, and returns the cause. It calls end to
// end the stream. Output of commands is written for a while longer; Wait waits for that.
func (l *Link) Run(end func()) error {
	stopped, asked := make(chan struct{}), make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() {
		asked <- l.requests()
		end()
	})
	work.Go(func() { l.ping(stopped) })
	err := l.mux.Run()
	close(stopped)
	l.outlet.shut()
	_ = l.socket.Close()
	work.Wait()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, <-asked)
}

// Wait waits until all goroutines of the link have ended, after Run has returned.
func (l *Link) Wait() { l.mux.Wait() }

func (l *Link) ping(stopped <-chan struct{}) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-t.C:
			_ = l.mux.Ping() // the stream's end is seen elsewhere
		}
	}
}

// requests carries the service's requests.
func (l *Link) requests() error {
	packet, rights := make([]byte, wire.MaxPacket), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, nr, _, _, err := l.socket.ReadMsgUnix(packet, rights)
		if err != nil {
			return ended(err)
		}
		if n == 0 {
			return nil
		}
		files, err := open(rights[:nr])
		if err == nil {
			err = l.request(packet[:n], files)
		} else {
			closeAll(files)
		}
		if err != nil {
			return err
		}
	}
}

// ended drops the error of a closed socket.
func ended(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// request carries one request. It owns the files.
func (l *Link) request(packet []byte, files []*os.File) error {
	kind := wire.Kind(packet[0])
	if kind == wire.Long && len(files) > 0 {
		long, err := io.ReadAll(io.NewSectionReader(files[0], 0, stream.MaxRequest+1))
		if err := errors.Join(err, files[0].Close()); err != nil {
			closeAll(files[1:])
			return err
		}
		packet, files, kind = long, files[1:], wire.Start
	}
	if kind == wire.Listen {
		l.outlet.ask()
	}
	if kind != wire.Start {
		closeAll(files)
		return l.mux.Send(packet)
	}
	c, err := wire.DecodeCommand(packet)
	if err != nil || !c.Terminal && len(files) != 3 || len(packet) > stream.MaxRequest {
		closeAll(files)
		return errors.Join(wire.ErrMalformed, err)
	}
	if c.Terminal {
		l.mu.Lock()
		l.terminals[c.ID] = true
		l.mu.Unlock()
		return l.mux.Send(packet)
	}
	l.mux.Drain(stream.Channel(c.ID, stream.Output), files[1])
	l.mux.Drain(stream.Channel(c.ID, stream.Errors), files[2])
	if err := l.mux.Send(packet); err != nil {
		return errors.Join(err, files[0].Close())
	}
	l.mux.Pump(stream.Channel(c.ID, stream.Input), files[0]) // only after the start is sent
	return nil
}

// reply carries a reply of init.
func (l *Link) reply(packet []byte) error {
	reply, err := wire.DecodeReply(packet)
	if err != nil {
		return err
	}
	if reply.Kind == wire.Connected {
		return l.connected(reply.ID)
	}
	terminal := reply.Kind != wire.Terminals && l.takeTerminal(reply.ID)
	if reply.Kind != wire.Started || !terminal {
		_, _, err := l.socket.WriteMsgUnix(packet, nil, nil)
		return err
	}
	theirs, err := l.openTerminal(reply.ID)
	if err != nil {
		return err
	}
	_, _, err = l.socket.WriteMsgUnix(packet, unix.UnixRights(theirs), nil)
	return errors.Join(err, unix.Close(theirs))
}

// takeTerminal reports whether a command waits for a terminal. Only the first call for a command can.
func (l *Link) takeTerminal(command uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	terminal := l.terminals[command]
	delete(l.terminals, command)
	return terminal
}

// openTerminal makes the local end of a terminal: a socket.
func (l *Link) openTerminal(id uint64) (theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	out, err := unix.FcntlInt(uintptr(pair[0]), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	l.mux.Drain(stream.Channel(id, stream.Output), terminalOutput{os.NewFile(uintptr(out), "terminal")})
	l.mux.Pump(stream.Channel(id, stream.Input), os.NewFile(uintptr(pair[0]), "terminal"))
	return pair[1], nil
}

// terminalOutput is the receiving side of a terminal's output. Its Close only ends the reading: the socket stays open
// for the terminal's input.
type terminalOutput struct{ *os.File }

func (s terminalOutput) Close() error {
	raw, err := s.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
	return s.File.Close()
}

// open makes files of the descriptors of a message.
func open(rights []byte) ([]*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			_ = unix.SetNonblock(fd, true) // so that Close ends a waiting read
			files = append(files, os.NewFile(uintptr(fd), "command"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
