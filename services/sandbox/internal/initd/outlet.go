package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

const (
	// acceptPause is how long init waits when it cannot accept a connection.
	acceptPause = 50 * time.Millisecond
	// catchUpTimeout is how long the report of a command's end waits for connections that were made before,
	// and catchUpAgain is how often init checks for some. It then turns the rest away, at most maxTurned:
	// connections may arrive without end.
	catchUpTimeout = time.Second
	catchUpAgain   = time.Millisecond
	maxTurned      = 1 << 14
)

// outlet is the sandbox's way out where the service is elsewhere: init listens and carries each connection
// over the stream. The service decides what may be reached.
type outlet struct {
	mux      *stream.Mux
	listener *os.File
	raw      syscall.RawConn
	room     chan struct{} // one token for each connection that is carried
	telling  sync.Mutex    // held from before a connection is accepted until it is reported
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
		o.telling.Lock()
		fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err == nil {
			o.carry(fd, id)
		}
		o.telling.Unlock()
		switch {
		case err == nil:
			return true
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

// catchUp returns when all earlier connections are reported, so that the report of a command's end comes
// after all that the command began.
func (o *outlet) catchUp() {
	for begin := time.Now(); o.waits(); <-time.After(catchUpAgain) {
		if time.Since(begin) >= catchUpTimeout {
			o.turnAway()
			return
		}
	}
}

// waits reports whether a connection waits to be accepted, after earlier ones have been reported.
func (o *outlet) waits() (some bool) {
	o.telling.Lock()
	defer o.telling.Unlock()
	err := o.raw.Control(func(listener uintptr) { some = readable(listener) })
	return some && err == nil // otherwise the listener is closed
}

// turnAway accepts waiting connections only to report how many there are.
func (o *outlet) turnAway() {
	o.telling.Lock()
	defer o.telling.Unlock()
	turned := wire.Reply{Kind: wire.Turned}
	_ = o.raw.Control(func(listener uintptr) { // an error means that the listener is closed
		for turned.ID < maxTurned {
			fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC)
			switch {
			case err == nil:
				turned.ID++
				_ = unix.Close(fd)
			case !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.EINTR):
				return
			}
		}
	})
	_ = o.mux.Send(turned.Encode()) // the stream's end is seen elsewhere
}

func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}
