// Package grpcweb serves the public RPCs to browsers: gRPC-Web, binary and text, over HTTP/1.1 and HTTP/2. Unary RPCs
// and server streams are possible; browsers cannot send streams.
//
// Messages are passed on unchanged. The status is always in a trailer frame of the body, which every client reads.
package grpcweb

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/forward"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Server serves gRPC-Web requests. It is safe for concurrent use.
type Server struct {
	Methods *forward.Table
	Streams *limit.Streams
	// Timeout bounds a unary call, BodyTimeout the arrival of a request and WriteTimeout a write to a slow reader.
	Timeout, BodyTimeout, WriteTimeout time.Duration
	MaxBody                            int64
	Log                                *slog.Logger
}

// Media types of gRPC-Web; each may end in +proto.
const (
	binaryType = "application/grpc-web"
	textType   = "application/grpc-web-text"
)

// Is reports whether a request is a call of gRPC-Web.
func Is(r *http.Request) bool {
	_, ok := form(r)
	return ok && r.Method == http.MethodPost
}

// form returns the media type of a request, without +proto.
func form(r *http.Request) (string, bool) {
	name, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	name = strings.TrimSuffix(name, "+proto")
	return name, err == nil && (name == binaryType || name == textType)
}

// Match implements door.Door. A path that is no RPC's is refused here, too, if the request is a call.
func (s *Server) Match(method, path string) *door.Route {
	rt := &door.Route{Allow: []string{http.MethodPost}, Open: access.Open(path)}
	if s.Methods.Find(path) != nil { // keep the number of span names small
		rt.Pattern = "gRPC-Web " + path
	} else if method != http.MethodPost {
		return nil
	}
	if method == http.MethodPost {
		rt.Serve = s.serve
	}
	return rt
}

// serve answers a request for which Is holds. Its errors are in the answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	a := s.begin(w, r)
	a.end(s.call(w, r, a))
	return nil
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, a *answer) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	m := s.Methods.Find(r.URL.Path)
	switch {
	case m == nil:
		return problem.PathNotFound(r.URL.Path)
	case m.ClientStreams:
		return problem.NoClientStreams(m.Name)
	}
	limited, stop, err := deadline(ctx, r.Header.Get("Grpc-Timeout"))
	if err != nil {
		return err
	}
	defer stop()
	request, err := s.request(w, r)
	if err == nil && m.ServerStreams {
		err = s.stream(limited, cancel, a, m, request, limit.Of(r))
	} else if err == nil {
		err = s.unary(limited, a, m, request)
	}
	if err != nil {
		err = cmp.Or(auth.Ended(ctx), err)
	}
	if err != nil && problem.HTTPStatus(err) >= http.StatusInternalServerError {
		s.Log.WarnContext(ctx, "request failed", "request_id", w.Header().Get(headers.RequestID), "rpc", m.Name, "error", err)
	}
	return err
}

// Refuse implements door.Door.
func (s *Server) Refuse(w http.ResponseWriter, r *http.Request, err error) { s.begin(w, r).end(err) }

func (s *Server) unary(ctx context.Context, a *answer, m *forward.Method, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	reply, header, err := m.Invoke(ctx, rpc.NewFrame(request))
	a.header(header)
	if err != nil {
		return err
	}
	return a.message(reply.Bytes())
}

func (s *Server) stream(ctx context.Context, cancel context.CancelCauseFunc, a *answer, m *forward.Method, request []byte, client limit.Client) error {
	release, err := s.Streams.Acquire(client)
	if err != nil {
		return err
	}
	defer release()
	// A stopping gateway ends the stream.
	var watch sync.WaitGroup
	defer watch.Wait()
	ended := make(chan struct{})
	defer close(ended)
	watch.Go(func() {
		select {
		case <-rpc.Draining(ctx):
			cancel(problem.Stopping())
		case <-ended:
		}
	})
	st, err := m.Open(ctx)
	if err == nil {
		err = st.SendMsg(rpc.NewFrame(request))
	}
	if err == nil || errors.Is(err, io.EOF) { // the messages say why it has ended
		err = st.CloseSend()
	}
	if err != nil {
		return err
	}
	a.header(forward.Header(st))
	err = a.messages(st)
	if cause := context.Cause(ctx); err != nil && problem.Reason(cause) == problem.ReasonStopping {
		return cause
	}
	return err
}

// messages passes on what a stream receives.
func (a *answer) messages(st grpc.ClientStream) error {
	for {
		f := &rpc.Frame{}
		err := st.RecvMsg(f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = a.message(f.Bytes())
		}
		if err != nil {
			return problem.Forward(err)
		}
	}
}

// request reads the one message of a request.
func (s *Server) request(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := s.MaxBody
	if access.Open(r.URL.Path) {
		most = min(most, maxOpen)
	}
	data, err := codec.NewBody(w, r, most, s.BodyTimeout).Bytes()
	if err != nil {
		return nil, err
	}
	if name, _ := form(r); name == textType {
		if data, err = decodeText(data); err != nil {
			return nil, err
		}
	}
	return oneMessage(data)
}

// answer writes one answer.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	text    bool
	timeout time.Duration
	begun   bool
	buf     []byte
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) *answer {
	name, _ := form(r)
	h := w.Header()
	h.Set("Content-Type", name+"+proto")
	h.Set("Cache-Control", "no-cache, no-store, no-transform") // a compressing proxy may delay messages
	h.Set("X-Accel-Buffering", "no")
	return &answer{w: w, control: http.NewResponseController(w), text: name == textType, timeout: s.WriteTimeout}
}

// header sets the headers that come from the service, before the first message.
func (a *answer) header(md metadata.MD) {
	for name, values := range md {
		a.w.Header()[http.CanonicalHeaderKey(name)] = values
	}
}

// message writes a message and flushes it.
func (a *answer) message(data []byte) error { return a.write(0, data) }

// end writes the status.
func (a *answer) end(err error) {
	st := problem.Status(err)
	if after, ok := problem.RetryAfter(st); ok && !a.begun {
		a.w.Header().Set("Retry-After", problem.Seconds(after))
	}
	_ = a.write(trailerFlag, trailers(st)) // an error means that the client has gone
}

func (a *answer) write(flag byte, data []byte) error {
	if !a.begun {
		a.begun = true
		a.w.WriteHeader(http.StatusOK)
	}
	a.buf = appendFrame(a.buf[:0], flag, data, a.text)
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = a.control.SetWriteDeadline(time.Now().Add(a.timeout))
	if _, err := a.w.Write(a.buf); err != nil { //nolint:gosec // the type of the answer is gRPC-Web's, which no browser renders
		return err
	}
	if cap(a.buf) > keptBuffer {
		a.buf = nil
	}
	return a.control.Flush()
}

// maxOpen bounds the body of an RPC that needs no credential, in bytes: a delivery of 256 KiB as base64.
const maxOpen = 512 << 10

// keptBuffer bounds the memory of a quiet stream, in bytes.
const keptBuffer = 64 << 10

// deadline returns ctx with the deadline of the header grpc-timeout: up to eight digits and a unit.
func deadline(ctx context.Context, header string) (context.Context, context.CancelFunc, error) {
	if header == "" {
		return ctx, func() {}, nil
	}
	units := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond}
	n, unit := int64(0), units[header[len(header)-1]]
	digits := header[:len(header)-1]
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			unit = 0
		}
		n = n*10 + int64(c-'0')
	}
	if unit == 0 || len(digits) == 0 || len(digits) > 8 {
		return nil, nil, status.Error(codes.InvalidArgument, "the header grpc-timeout is not a number and one of H, M, S, m, u, n")
	}
	const most = 365 * 24 * time.Hour // longer ones overflow a duration
	d := most
	if n < int64(most/unit) {
		d = time.Duration(n) * unit
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}
