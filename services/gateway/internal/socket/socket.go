// Package socket serves conversations over WebSocket: the inputs of SessionService.Converse as JSON in text messages,
// and its answers in the same way.
//
// A socket costs its client nothing that a stream of server-sent events would not: it resumes after any sequence
// number, and an input that was accepted is in the log. The last message before the server closes a socket says why.
package socket

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Protocol is the subprotocol of a socket. A client need not name it, unless it offers others.
const Protocol = "fairlead.v1"

// bearer begins the subprotocol with which a browser shows its credential: it can set no header, and an address is
// written into logs.
const bearer = "fairlead.bearer."

// root is the path of a socket whose first message names the session.
const root = "/v1/ws"

var inSession = regexp.MustCompile(`^/v1/(sessions/[a-z0-9][a-z0-9-]{0,62})/ws$`)

// Server serves sockets. It is safe for concurrent use.
type Server struct {
	door.Problems
	*wire.Server
	metrics *stream.Metrics
	guard   *http.CrossOriginProtection
}

// New returns a Server. Pages of the allowed origins may open sockets, besides those of the server's own.
func New(s *wire.Server, allowedOrigins []string) (*Server, error) {
	m, err := stream.NewMetrics()
	if err != nil {
		return nil, err
	}
	guard := http.NewCrossOriginProtection()
	for _, origin := range allowedOrigins {
		if err := guard.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return &Server{Server: s, metrics: m, guard: guard}, nil
}

// Identify moves the credential of a browser's socket to where every other request has it.
func Identify(r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		return
	}
	var kept []string
	for _, p := range protocols(r) {
		if credential, ok := strings.CutPrefix(p, bearer); ok {
			r.Header.Set("Authorization", "Bearer "+credential)
		} else {
			kept = append(kept, p)
		}
	}
	r.Header.Set("Sec-WebSocket-Protocol", strings.Join(kept, ", "))
}

// protocols returns the subprotocols that a client offers.
func protocols(r *http.Request) (all []string) {
	for p := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if p = strings.TrimSpace(p); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// match returns the route of a path and the session that it names, if it names one.
func match(path string) (route, session string) {
	if path == root {
		return root, ""
	}
	if m := inSession.FindStringSubmatch(path); m != nil {
		return "/v1/sessions/{session}/ws", m[1]
	}
	return "", ""
}

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	route, _ := match(path)
	if route == "" {
		return nil
	}
	return door.At(method, route, []string{http.MethodGet}, s.serve)
}

// serve returns an error for a request that gets no socket.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	if err := s.check(w, r); err != nil {
		return err
	}
	after, _, err := codec.ResumePoint(r.Header, r.URL.Query())
	if err != nil {
		return err
	}
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Protocol}, InsecureSkipVerify: true}) // check has looked at the origin
	if err != nil {
		return nil // it is answered
	}
	defer func() { _ = socket.CloseNow() }()
	socket.SetReadLimit(s.MaxBody)
	_, session := match(r.URL.Path)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	c := &conversation{Server: s, socket: socket, cancel: cancel}
	c.hold(ctx, session, after)
	return nil
}

// check refuses what is no handshake, or is another site's.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	if r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		return problem.WithStatus(http.StatusUpgradeRequired, problem.BadParameter("Upgrade",
			"must be websocket, over HTTP/1.1: this path takes WebSocket connections only; for server-sent events read /v1/sessions/{session}/events"))
	}
	asPost := r.Clone(r.Context())
	asPost.Method = http.MethodPost // a handshake is a GET that can change something
	if s.guard.Check(asPost) != nil {
		return problem.CrossOrigin(r.Header.Get("Origin"))
	}
	for name := range r.URL.Query() {
		if name != "afterSeq" && name != "after_seq" {
			return problem.BadParameter(name, "is not known here; afterSeq is "+strconv.Quote("the last sequence number that the client has"))
		}
	}
	return nil
}
