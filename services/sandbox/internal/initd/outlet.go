package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// acceptPause is how long init waits when it cannot accept a connection.
const acceptPause = 50 * time.Millisecond

// outlet is the sandbox's way out where the service is elsewhere: init listens and carries each connection
// over the stream. The service decides what may be reached.
type outlet struct {
	mux      *stream.Mux
	listener *os.File
	raw      syscall.RawConn
	room     chan struct{} // one token for each connection that is carried
}

// listen opens the way out. It is called once at a time: the stream's packets come one by one.
func (r *relay) listen() error {
	if r.wayOut() != nil {
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
	r.mu.Lock()
	r.outlet = o
	r.mu.Unlock()
	go o.serve()
	p := wire.Reply{Kind: wire.Listening}
	return r.mux.Send(p.Encode())
}

// unlisten closes the way out.
func (r *relay) unlisten() error {
	o := r.wayOut()
	if o == nil {
		return wire.ErrMalformed
	}
	return o.listener.Close()
}

// wayOut returns the way out, or nil before Listen.
func (r *relay) wayOut() *outlet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outlet
}

// serve accepts connections until the listener is closed. With the stream, init ends.
func (o *outlet) serve() {
	for id := uint64(1); ; id++ {
		o.room <- struct{}{}
		if o.raw.Read(func(listener uintptr) bool { return o.next(listener, id) }) != nil {
			return
		}
	}
}

// next accepts a connection, if there is one, and reports it. A failure of one connection is no error. If
// there is no room, the connection waits for its turn.
func (o *outlet) next(listener uintptr, id uint64) (done bool) {
	for {
		fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err == nil {
			o.carry(fd, id)
			return true
		}
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false
		case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
		default:
			<-time.After(acceptPause)
		}
	}
}

// carry reports a connection and carries it. The stream's end is seen elsewhere.
func (o *outlet) carry(fd int, id uint64) {
	from, to := stream.Split(os.NewFile(uintptr(fd), "connection"), func() { <-o.room })
	channel := stream.Channel(id, stream.Connection)
	o.mux.Drain(channel, to) // before the service knows of it and sends data
	p := wire.Reply{Kind: wire.Connected, ID: id}
	_ = o.mux.Send(p.Encode())
	o.mux.Pump(channel, from) // only after the service knows of it
}
