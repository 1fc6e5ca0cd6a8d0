package egress

import (
	"errors"
	"net"
	"os"
	"time"
)

// door accepts connections, up to the sandbox's maximum number.
type door struct {
	net.Listener
	s *Server
}

// busy is the answer to a client beyond the maximum.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"this sandbox has as many connections as it may: close some first\n"

// lost is a connection that its listener could not keep. It is closed and only reported.
type lost interface {
	net.Conn
	Lost() (why string)
}

// Accept implements net.Listener.
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if d.s.backlog != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			d.s.caughtUp(false)
			continue
		}
		if err != nil {
			d.s.caughtUp(true)
			return nil, err
		}
		m := d.admit(c)
		d.s.accepted.Add(1)
		if m != nil {
			return m, nil
		}
	}
}

// admit accepts a connection or refuses it, and reports that.
func (d door) admit(c net.Conn) *meter {
	if l, ok := c.(lost); ok {
		_ = c.Close()
		d.s.refuse(l.Lost())
		return nil
	}
	if m := d.s.admit(c); m != nil {
		return m
	}
	d.s.refuse("the sandbox has as many connections as it may")
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // it fits into the socket's buffer
	_, _ = c.Write([]byte(busy))
	_ = c.Close()
	return nil
}

// refuse reports a connection for which there is no room.
func (s *Server) refuse(why string) {
	r := s.begin(nil, KindTunnel, "", "")
	r.Outcome, r.Message = Limited, why
	r.end()
}
