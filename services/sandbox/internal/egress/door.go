package egress

import (
	"net"
	"time"
)

// door accepts connections, up to the sandbox's maximum number.
type door struct {
	net.Listener
	s *Server
}

// busy is the answer to a client beyond the maximum.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"this sandbox has too many connections: close some first\n"

// Accept implements net.Listener.
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if m := d.s.admit(c); m != nil {
			return m, nil
		}
		d.s.refuse(c)
	}
}

// refuse answers and reports a connection for which there is no room.
func (s *Server) refuse(c net.Conn) {
	r := s.begin(nil, KindTunnel, "", "")
	r.Outcome, r.Message = Limited, "the sandbox has too many connections"
	r.end()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // it fits into the socket's buffer
	_, _ = c.Write([]byte(busy))
	_ = c.Close()
}
