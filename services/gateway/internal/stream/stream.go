// Package stream sends the event streams of sessions over HTTP: as server-sent events, resumed by
// Last-Event-ID, or as lines of JSON.
//
// A stream reads the log on a stream of the service's until it has caught up. There each message is passed on unbuffered
// and written before the next is read, so a slow reader delays only its own stream, up to the service. Then it follows
// the session's feed, which all its streams share. A reader that takes nothing within the write timeout is cut off. It loses nothing, because
// it can resume.
package stream

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
)

// Config bounds streams.
type Config struct {
	// Heartbeat is the interval at which a quiet stream of server-sent events is
	// kept alive.
	Heartbeat time.Duration
	// WriteTimeout bounds how long one write may wait for a slow reader.
	WriteTimeout time.Duration
	// OpenTimeout bounds how long the service may take to accept a stream.
	OpenTimeout time.Duration
	// Reconnect is the wait of clients before they reconnect.
	Reconnect time.Duration
	// MaxBody and BodyTimeout bound the body that starts a stream, and a line of a conversation,
	// in bytes.
	MaxBody     int64
	BodyTimeout time.Duration
}

// Server serves the requests for streams. It is safe for concurrent use.
type Server struct {
	cfg     Config
	client  sessionv1.SessionServiceClient
	tools   sessionv1.SessionToolServiceClient
	streams *limit.Streams
	shared  Shared
	metrics *Metrics
	log     *slog.Logger
}

// Shared is what the followers of all protocols share: the ends of logs, and the answers that wait.
type Shared struct {
	Feeds  *feed.Hub
	Keeper *idle.Keeper
}

// NewServer returns a Server of the session service behind a connection. It opens at most as many
// streams as streams allows.
func NewServer(cfg Config, session grpc.ClientConnInterface, streams *limit.Streams, shared Shared, log *slog.Logger) (*Server, error) {
	m, err := NewMetrics()
	if err != nil {
		return nil, err
	}
	return &Server{
		cfg: cfg, client: sessionv1.NewSessionServiceClient(session), tools: sessionv1.NewSessionToolServiceClient(session),
		streams: streams, shared: shared, metrics: m, log: log,
	}, nil
}

// keyHeader returns the request's idempotency key.
const keyHeader = "Idempotency-Key"

// begin sends the headers of a stream.
func (s *Server) begin(o *output, src *source) error {
	if key := src.key(); key != "" {
		o.w.Header().Set(keyHeader, key)
	}
	if src.session != "" {
		idle.Announce(src.outer, o.w.Header())
	}
	o.Begin(o.enc.contentType())
	o.Buf = o.enc.begin(o.Buf)
	return o.Flush()
}

// output is the stream of a request in one format.
type output struct {
	*Output
	enc encoder
}

// pump writes a stream until it ends, its reader leaves or the server stops. The stream of a session goes on in the
// session's feed once it has caught up.
func (s *Server) pump(ctx context.Context, o *output, src *source) {
	p := pumping{Server: s, o: o, by: By(src.rpc), session: src.session, after: src.after}
	defer idle.Until(ctx, s.metrics.Opened(ctx, p.by))()
	err := p.run(ctx, src)
	if errors.Is(err, errCaughtUp) {
		src.close()
		p.follow(src.outer) //nolint:contextcheck // ctx has ended with src
		return
	}
	if err != nil {
		s.cut(ctx, src.rpc, err)
	}
}

// cut logs why a stream could not be written to its end.
func (s *Server) cut(ctx context.Context, rpc string, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.metrics.Dropped(ctx, By(rpc))
		s.log.WarnContext(ctx, "stream cut, its reader is too slow", "rpc", rpc, "write_timeout", s.cfg.WriteTimeout)
		return
	}
	s.log.DebugContext(ctx, "stream ended by its reader", "rpc", rpc, "error", err)
}
