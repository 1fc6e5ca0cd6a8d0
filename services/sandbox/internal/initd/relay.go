package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// deafTimeout is the silence after which init takes the service for gone.
const deafTimeout = 90 * time.Second

// relay stands in for a service that is elsewhere. It serves the other end of init's socket, makes the
// files of commands, and carries all data over standard input and output.
type relay struct {
	mux    *stream.Mux
	socket int // the service's end
	mu     sync.Mutex
	// terminals are the masters of commands' terminals, by command.
	terminals map[uint64]int
	// outputs are closed when all of a command's output is sent, by command.
	outputs map[uint64][]<-chan struct{}
	// long are starts that are too long for a packet, by command.
	long map[uint64][]byte

	outlet *outlet // nil until Listen
}

// startRelay makes the socket of an init whose service is elsewhere, and serves its other end. When the
// stream ends, all processes in the sandbox end.
func startRelay() (socket int, r *relay, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	r = &relay{socket: pair[1], terminals: map[uint64]int{}, outputs: map[uint64][]<-chan struct{}{}, long: map[uint64][]byte{}}
	deaf := time.AfterFunc(deafTimeout, func() { endAll("the service was silent for " + deafTimeout.String()) })
	r.mux = stream.New(stream.Options{
		Read: os.Stdin, Write: os.Stdout, MaxPacket: stream.MaxRequest, Packet: r.request,
		OnFrame: func() { deaf.Reset(deafTimeout) },
	})
	go func() {
		if err := r.mux.Run(); !errors.Is(err, io.EOF) {
			endAll(fmt.Sprint("the stream broke: ", err))
		}
		endAll("") // the service has closed the stream
	}()
	go func() { endAll(fmt.Sprint("init does not answer: ", r.replies())) }()
	return pair[0], r, nil
}

// endAll ends all processes in the sandbox, and the program that keeps it open. It prints the reason if
// there is one.
func endAll(why string) {
	if why != "" {
		fmt.Fprintln(os.Stderr, "init:", why)
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	_ = unix.Kill(1, unix.SIGTERM)
	os.Exit(1)
}

// request passes a request of the service on to init.
func (r *relay) request(p []byte) error {
	if len(p) == 0 {
		return wire.ErrMalformed
	}
	switch wire.Kind(p[0]) {
	case wire.Start:
		return r.start(p)
	case wire.Resize:
		return r.resize(p)
	case wire.Listen:
		return r.listen()
	case wire.Unlisten:
		return r.unlisten()
	}
	return unix.Sendmsg(r.socket, p, nil, nil, unix.MSG_NOSIGNAL)
}

// start makes a command's files and makes init start it.
func (r *relay) start(p []byte) (err error) {
	c, err := wire.DecodeCommand(p)
	if err != nil {
		return err
	}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			err = errors.Join(err, f.Close())
		}
	}()
	if !c.Terminal {
		if theirs, err = r.pipes(c.ID); err != nil {
			return err
		}
	}
	var files []int
	for _, f := range theirs {
		files = append(files, int(f.Fd()))
	}
	if len(p) <= wire.MaxPacket {
		return unix.Sendmsg(r.socket, p, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
	}
	// Not in a file: the sandbox's limits bound files.
	r.mu.Lock()
	r.long[c.ID] = p
	r.mu.Unlock()
	return unix.Sendmsg(r.socket, wire.EncodeID(wire.Long, c.ID), unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
}

// takeLong returns the start of a command that is too long for a packet.
func (r *relay) takeLong(packet []byte) ([]byte, error) {
	id, err := wire.DecodeID(packet)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.long[id]
	delete(r.long, id)
	return p, nil
}

// pipes makes the standard streams of a command and returns its ends of them.
func (r *relay) pipes(id uint64) (theirs []*os.File, err error) {
	for which := stream.Input; which <= stream.Errors; which++ {
		read, write, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if which == stream.Input {
			theirs = append(theirs, read)
			r.mux.Drain(stream.Channel(id, which), write)
			continue
		}
		theirs = append(theirs, write)
		r.pump(id, which, read)
	}
	return theirs, nil
}

// resize sets the size of a command's terminal. Without an open terminal it does nothing.
func (r *relay) resize(p []byte) error {
	id, rows, columns, err := wire.DecodeResize(p)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if master, ok := r.terminals[id]; ok {
		_ = terminal.Resize(master, rows, columns)
	}
	return nil
}

// replies passes init's replies on, without the files: terminals are carried over the stream.
func (r *relay) replies() error {
	p, rights := make([]byte, wire.MaxReply), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, nr, _, _, err := unix.Recvmsg(r.socket, p, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(err, errors.New("it ended"))
		}
		files, err := parseFiles(rights[:nr])
		if err != nil {
			return err
		}
		reply, err := wire.DecodeReply(p[:n])
		if err != nil {
			return err
		}
		if err := r.reply(reply, p[:n], files); err != nil {
			return err
		}
	}
}

func (r *relay) reply(reply wire.Reply, p []byte, files []int) error {
	switch reply.Kind {
	case wire.Exited:
		r.forgetTerminal(reply.ID)
		r.exited(reply.ID, bytes.Clone(p))
		return nil
	case wire.Failed:
		r.mu.Lock()
		delete(r.outputs, reply.ID)
		r.mu.Unlock()
	}
	if len(files) > 0 {
		_ = unix.Close(files[0]) // the pidfd: the service cannot use it
	}
	if len(files) < 2 {
		return r.mux.Send(p)
	}
	out, err := r.openTerminal(reply.ID, files[1])
	if err != nil {
		return err
	}
	if err := r.mux.Send(p); err != nil {
		return err
	}
	r.pump(reply.ID, stream.Output, out) // only after the start is reported
	return nil
}

func (r *relay) pump(id uint64, which int, from io.ReadCloser) {
	sent := r.mux.Pump(stream.Channel(id, which), from)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs[id] = append(r.outputs[id], sent)
}

// exited reports a command's end after all its output is sent, because the service may end the sandbox then.
// Nothing is left that could write more, unless other commands run beside it.
func (r *relay) exited(id uint64, p []byte) {
	r.mu.Lock()
	outputs := r.outputs[id]
	delete(r.outputs, id)
	r.mu.Unlock()
	go func() {
		for _, sent := range outputs {
			<-sent
		}
		_ = r.mux.Send(p) // the stream's end is seen elsewhere
	}()
}

// openTerminal carries a terminal's input and returns its output. It uses three descriptors: each direction
// can close its own, and the third sets the size.
func (r *relay) openTerminal(id uint64, master int) (io.ReadCloser, error) {
	var more [2]int
	for i := range more {
		fd, err := unix.FcntlInt(uintptr(master), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, err
		}
		more[i] = fd
	}
	if err := unix.SetNonblock(master, true); err != nil { // of all three
		return nil, err
	}
	r.mu.Lock()
	r.terminals[id] = master
	r.mu.Unlock()
	r.mux.Drain(stream.Channel(id, stream.Input), os.NewFile(uintptr(more[0]), "terminal"))
	return hanging{terminal.Output{File: os.NewFile(uintptr(more[1]), "terminal")}, r, id}, nil
}

// hanging is a terminal's output: Close hangs up the terminal.
type hanging struct {
	terminal.Output
	r  *relay
	id uint64
}

func (h hanging) Close() error {
	h.r.forgetTerminal(h.id)
	return h.Output.Close()
}

func (r *relay) forgetTerminal(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if master, ok := r.terminals[id]; ok {
		_ = unix.Close(master)
		delete(r.terminals, id)
	}
}
