package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// acceptPause is how long init waits when it cannot take a connection now.
const acceptPause = 50 * time.Millisecond

// outlet is the sandbox's way out where the service is elsewhere: init listens, and
// carries each connection over the stream. What may be reached is the service's to say.
type outlet struct {
	mux      *stream.Mux
	listener *os.File
	raw      interface {
		Read(func(fd uintptr) bool) error
	}
	room chan struct{} // one for each connection that is carried
}

// listen opens the way out. It does so once: the stream's packets come one by one.
func (r *relay) listen() error {
	if r.outlet != nil {
		return wire.ErrMalformed
	}
	fd, err := openListener()
	if err != nil {
		return fmt.Errorf("open the way out: %w", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	// Half of its files are for commands.
	o := &outlet{mux: r.mux, listener: os.NewFile(uintptr(fd), "way out"), room: make(chan struct{}, min(stream.MaxConnections, max(1, files.Cur/2)))}
	if o.raw, err = o.listener.SyscallConn(); err != nil {
		return err
	}
	r.outlet = o
	go o.serve()
	p := wire.Reply{Kind: wire.Listening}
	return r.mux.Send(p.Encode())
}

// unlisten closes the way out: nobody is to have it.
func (r *relay) unlisten() error {
	if r.outlet == nil {
		return wire.ErrMalformed
	}
	return r.outlet.listener.Close()
}

// serve accepts connections until the listener is closed. With the stream, init ends.
func (o *outlet) serve() {
	for id := uint64(1); ; id++ {
		o.room <- struct{}{}
		fd, err := o.accept()
		if err != nil {
			return
		}
		from, to := stream.Split(os.NewFile(uintptr(fd), "connection"), func() { <-o.room })
		channel := stream.Channel(id, stream.Connection)
		o.mux.Drain(channel, to) // before the service knows of it and sends something
		p := wire.Reply{Kind: wire.Connected, ID: id}
		if o.mux.Send(p.Encode()) != nil {
			return // the stream's end is seen elsewhere
		}
		o.mux.Pump(channel, from) // not before it is known
	}
}

// accept waits for a connection. What stands in the way of one is no error, nor is it
// that there is no room for one: its turn comes.
func (o *outlet) accept() (fd int, err error) {
	for {
		var fault error
		err := o.raw.Read(func(listener uintptr) bool {
			fd, _, fault = unix.Accept4(int(listener), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(fault, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return -1, err
		case fault == nil:
			return fd, nil
		case errors.Is(fault, unix.ECONNABORTED), errors.Is(fault, unix.EINTR):
		default:
			<-time.After(acceptPause)
		}
	}
}
