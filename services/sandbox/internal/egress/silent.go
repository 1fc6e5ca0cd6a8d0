package egress

import (
	"net"
	"net/http"
	"sync/atomic"
)

// line is a connection that a server of HTTP serves.
type line interface {
	net.Conn
	state() *requests
}

// requests is what is known of those over a connection. It is used by who accepts the
// connection, and after that by who serves it.
type requests struct {
	exec    string  // whose the connection is, or is said to be
	asked   bool    // whether a request has come
	waiting *record // of the connection while there is no request; nil: there is one

	quiet  atomic.Bool // while waiting is set
	unseen atomic.Bool // whether something came that no handler has seen, since it is no request
}

// written notes an answer: while no handler answers a request it is the server of HTTP's own, to
// what it does not take for one.
func (r *requests) written() {
	if r.quiet.Load() {
		r.unseen.Store(true)
	}
}

func (r *requests) state() *requests { return r }

// await begins the record of a connection that waits for a request: it is the command's that
// runs now, and not the one's that runs when it turns out that nothing comes.
func (s *Server) await(c line) {
	l := c.state()
	l.waiting = s.newRecord(meterOf(c), KindTunnel, l.exec, false)
	l.exec = l.waiting.Exec
	l.unseen.Store(false)
	l.quiet.Store(true)
}

// ask begins the record of a request, in place of that of its connection.
func (s *Server) ask(r *http.Request, kind, exec string) *record {
	c := r.Context().Value(connKey{}).(line) //nolint:forcetypeassert // nothing else is served
	l := c.state()
	if exec == "" {
		exec = l.exec
	}
	rec := s.begin(meterOf(c), kind, method(r), exec)
	l.exec, l.asked = rec.Exec, true
	l.quiet.Store(false)
	if l.waiting != nil {
		l.waiting.drop()
		l.waiting = nil
	}
	return rec
}

// silent reports an ended connection without a request, even if it sent bytes that are not a valid HTTP
// request. It also reports invalid bytes after the last request.
func (s *Server) silent(c line) {
	l := c.state()
	rec := l.waiting
	switch {
	case rec == nil:
		return
	case l.asked && !l.unseen.Load():
		rec.drop()
		return
	}
	defer rec.end()
	rec.Outcome, rec.Message = Aborted, "nothing was asked for over the connection"
	if i, inside := c.(*intercept); inside {
		rec.Kind = KindIntercept
		rec.to(i.to)
	}
	why := meterOf(c).why.Load()
	switch {
	case why != nil && why != errCut:
		rec.fail(why)
	case l.unseen.Load():
		rec.Outcome, rec.Message = BadRequest, "what came over the connection is no request of HTTP"
	}
}
