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
	// acceptPause is how long init waits when it cannot take a connection now.
	acceptPause = 50 * time.Millisecond
	// catchUpTimeout is how long the word of a command's end waits for connections that were made
	// before, and catchUpAgain is how often it is looked whether there are any. What is left then
	// is turned away, but no more than maxTurned: others may connect without end.
	catchUpTimeout = time.Second
	catchUpAgain   = time.Millisecond
	maxTurned      = 1 << 14
)

// outlet is the sandbox's way out where the service is elsewhere: init listens, and
// carries each connection over the stream. What may be reached is the service's to say.
type outlet struct {
	mux      *stream.Mux
	listener *os.File
	raw      syscall.RawConn
	room     chan struct{} // one for each connection that is carried
	telling  sync.Mutex    // held from before a connection is accepted until it is told of
}

// listen opens the way out. It does so once: the stream's packets come one by one.
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

// next takes a connection, if there is one, and tells of it. What stands in the way of one is no
// error, nor is it that there is no room for one: its turn comes.
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

// carry tells of a connection and carries it. The stream's end is seen elsewhere.
func (o *outlet) carry(fd int, id uint64) {
	from, to := stream.Split(os.NewFile(uintptr(fd), "connection"), func() { <-o.room })
	channel := stream.Channel(id, stream.Connection)
	o.mux.Drain(channel, to) // before the service knows of it and sends something
	p := wire.Reply{Kind: wire.Connected, ID: id}
	_ = o.mux.Send(p.Encode())
	o.mux.Pump(channel, from) // not before it is known
}

// catchUp returns when all is told of that has connected before, so that what is told of the end of a
// command comes after all that it began.
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
