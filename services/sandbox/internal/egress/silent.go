package egress

import (
	"net"
	"net/http"
	"sync/atomic"
)

// line is a connection that an HTTP server serves.
type line interface {
	net.Conn
	state() *requests
}

// requests is the state of the requests over a connection. First the accepting goroutine uses it, then the
// serving one.
type requests struct {
	exec    string  // the command that the connection belongs to, or names
	asked   bool    // whether a request has come
	waiting *record // of the connection while there is no request; nil if there is one

	quiet  atomic.Bool // while waiting is set
	unseen atomic.Bool // whether invalid data has come that no handler sees
}

// written notes an answer. While no handler is active, the answer is the HTTP server's own, to invalid
// data.
func (r *requests) written() {
	if r.quiet.Load() {
		r.unseen.Store(true)
	}
}

func (r *requests) state() *requests { return r }

// await begins the record of a connection that waits for a request. The record belongs to the command that
// runs now, not to the one that runs when the connection ends without a request.
func (s *Server) await(c line) {
	l := c.state()
	l.waiting = s.newRecord(meterOf(c), KindTunnel, l.exec, false)
	l.exec = l.waiting.Exec
	l.unseen.Store(false)
	l.quiet.Store(true)
}

// ask begins the record of a request, in place of that of its connection.
func (s *Server) ask(r *http.Request, kind, exec string) *record {
	c := r.Context().Value(connKey{}).(line) //nolint:forcetypeassert // only lines are served
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
