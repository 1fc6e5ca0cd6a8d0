package egress

import (
	"net"
	"sync/atomic"
)

// asker is a connection that a server of HTTP serves.
type asker interface {
	net.Conn
	// asked says whether a request has come over it.
	asked() *atomic.Bool
}

func (m *meter) asked() *atomic.Bool { return &m.request }

func (i *intercept) asked() *atomic.Bool { return &i.request }

// silent tells of a connection that has ended and brought no request: whatever came over it
// instead, and that there was one.
func (s *Server) silent(c net.Conn) {
	if a, ok := c.(asker); !ok || a.asked().Load() {
		return
	}
	rec := s.begin(KindTunnel, "", "")
	defer rec.end()
	rec.Outcome, rec.Message = Aborted, "the client closed the connection, and had asked for nothing"
	m := meterOf(c)
	why := m.why.Load()
	switch i, inside := c.(*intercept); {
	case why != nil:
		rec.fail(why)
	case inside:
		rec.Kind = KindIntercept
		rec.to(i.to)
	case m.left.Load() != s.proxy.o.Limits.Bytes:
		rec.Outcome, rec.Message = BadRequest, "what came over the connection is no request of HTTP"
	}
}
