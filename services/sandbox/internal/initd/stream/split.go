package stream

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Split makes two files of a non-blocking socket, one for each direction, for Pump and Drain: each
// direction ends by itself, as on a connection. When both are closed it closes the socket and calls ended.
func Split(f *os.File, ended func()) (io.ReadCloser, io.WriteCloser) {
	s := &socket{file: f, ended: ended}
	s.left.Store(2)
	return &direction{s: s, how: unix.SHUT_RD}, &direction{s: s, how: unix.SHUT_WR}
}

type socket struct {
	file  *os.File
	left  atomic.Int32 // open directions
	ended func()
}

type direction struct {
	s    *socket
	how  int
	once sync.Once
}

func (d *direction) Read(b []byte) (int, error)         { return d.s.file.Read(b) }
func (d *direction) Write(b []byte) (int, error)        { return d.s.file.Write(b) }
func (d *direction) SetWriteDeadline(t time.Time) error { return d.s.file.SetWriteDeadline(t) }

// Close ends the direction and a waiting read. Only the first call counts.
func (d *direction) Close() (err error) {
	d.once.Do(func() {
		if raw, e := d.s.file.SyscallConn(); e == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), d.how) }) // the other side may have ended it
		}
		if d.s.left.Add(-1) == 0 {
			err = d.s.file.Close()
			d.s.ended()
		}
	})
	return err
}
