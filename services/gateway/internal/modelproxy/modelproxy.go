// Package modelproxy passes requests of the model APIs of Anthropic and OpenAI on to the session service, and its
// answers back, as they come. It neither reads nor keeps them.
package modelproxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
)

// maxBody is what a gRPC message takes, with room for the rest of the request.
const maxBody = 16<<20 - 256<<10

// Config configures the limits of requests.
type Config struct {
	// MaxBody and BodyTimeout bound a body; WriteTimeout is how long one write may take.
	MaxBody                   int64
	BodyTimeout, WriteTimeout time.Duration
}

// Server passes requests on. It is safe for concurrent use.
type Server struct {
	Config
	client sessionv1.ModelProxyServiceClient
	log    *slog.Logger
}

// New returns a server for the session service behind a connection.
func New(c Config, session grpc.ClientConnInterface, log *slog.Logger) *Server {
	c.MaxBody = min(c.MaxBody, maxBody)
	return &Server{Config: c, client: sessionv1.NewModelProxyServiceClient(session), log: log}
}

// NoKey is the key of clients without a credential: the SDKs insist on one.
const NoKey = "none"

// Identify removes a key that stands for no credential. Clients of other wires below the same paths send it, too.
func Identify(r *http.Request) {
	if _, ok := modelapi.Match(r.URL.Path); !ok {
		return
	}
	if r.Header.Get("X-Api-Key") == NoKey {
		r.Header.Del("X-Api-Key")
	}
	if strings.EqualFold(r.Header.Get("Authorization"), "Bearer "+NoKey) {
		r.Header.Del("Authorization")
	}
}

// Match implements door.Door. The service answers for methods and paths that the APIs do not have.
func (s *Server) Match(method, path string) *door.Route {
	route, ok := modelapi.Match(path)
	if !ok {
		return nil
	}
	rt := &door.Route{Serve: func(w http.ResponseWriter, r *http.Request) error { return s.serve(w, r, route) }}
	if route.Operation == modelapi.Unknown {
		return rt
	}
	if rt.Allow, rt.Pattern = []string{route.Method}, route.Method+" "+route.Pattern; method == http.MethodOptions {
		rt.Serve = nil
	}
	return rt
}

// Refuse implements door.Door.
func (*Server) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	route, _ := modelapi.Match(r.URL.Path)
	st := problem.Status(err)
	f := modelapi.Failure{Status: problem.HTTPStatus(err), Message: st.Message()}
	f.After, _ = problem.RetryAfter(st)
	route.Write(w, f, w.Header().Get(headers.RequestID))
}

// passed are the beginnings of the headers that the service knows. The SDKs' X-Stainless-* stay here: they tell of the
// client's machine.
var passed = []string{"Accept", "Anthropic-", "Content-Type", "Idempotency-Key", "Openai-", "User-Agent", "X-App", "X-Claude-Code-"}

// maxHeaders is how many headers a request to the service may have.
const maxHeaders = 60

// request returns the service's request.
func (s *Server) request(w http.ResponseWriter, r *http.Request, route modelapi.Route) (*sessionv1.CallModelRequest, error) {
	req := &sessionv1.CallModelRequest{
		Session: route.Session, Method: r.Method, Path: r.URL.Path, Query: strings.ToValidUTF8(r.URL.RawQuery, ""),
		Headers: map[string]string{"x-request-id": w.Header().Get(headers.RequestID)},
	}
	for name, values := range r.Header {
		for _, p := range passed {
			if strings.HasPrefix(name, p) && (name == p || strings.HasSuffix(p, "-")) && len(req.Headers) < maxHeaders {
				req.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
			}
		}
	}
	if r.Method != http.MethodPost {
		return req, nil
	}
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		return nil, err
	}
	var err error
	req.Body, err = codec.NewBody(w, r, s.MaxBody, s.BodyTimeout).Bytes()
	return req, err
}

// serve answers a request whose caller is known.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route modelapi.Route) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel() // a client that has gone, or reads nothing, ends the call
	req, err := s.request(w, r, route)
	if err != nil {
		return err
	}
	answer, err := s.client.CallModel(ctx, req)
	var piece *sessionv1.CallModelResponse
	if err == nil {
		piece, err = answer.Recv()
	}
	if err != nil {
		return cmp.Or(auth.Ended(ctx), err)
	}
	head := piece.GetHead()
	for name, value := range head.GetHeaders() {
		w.Header().Set(name, value)
	}
	w.WriteHeader(int(head.GetStatus()))
	s.copy(w, r, answer)
	return nil
}

// copy passes the body on. It panics to cut off an answer that cannot be completed.
func (s *Server) copy(w http.ResponseWriter, r *http.Request, answer grpc.ServerStreamingClient[sessionv1.CallModelResponse]) {
	control := http.NewResponseController(w)
	for {
		// Writers without deadlines, as in tests of handlers alone, ignore it.
		_ = control.SetWriteDeadline(time.Now().Add(s.WriteTimeout))
		if err := control.Flush(); err != nil {
			return // the client has gone
		}
		_ = control.SetWriteDeadline(time.Time{})
		piece, err := answer.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			if r.Context().Err() == nil {
				s.log.WarnContext(r.Context(), "a model's answer was cut off", "route", r.Pattern, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		_ = control.SetWriteDeadline(time.Now().Add(s.WriteTimeout))
		if _, err := w.Write(piece.GetData()); err != nil { //nolint:gosec // an API answer with nosniff is no page
			return // the client has gone
		}
	}
}
