// Package stream sends the event streams of sessions over HTTP: as server-sent events, resumed by Last-Event-ID, or as
// lines of JSON.
//
// A stream costs its reader's socket buffers, gRPC's flow-control window and one message: what is read from the service
// is handed over unbuffered and written before the next is read, so a slow reader slows its own stream alone, up to the
// service. A reader that takes nothing for as long as the write timeout is cut off; it loses nothing, because it can
// resume.
package stream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
)

// Config bounds streams.
type Config struct {
	// Heartbeat is how often a quiet stream of server-sent events is kept alive.
	Heartbeat time.Duration
	// WriteTimeout is how long one write may wait for a slow reader.
	WriteTimeout time.Duration
	// OpenTimeout is how long the service may take to accept a stream.
	OpenTimeout time.Duration
	// Reconnect is after how long clients come back when a stream breaks.
	Reconnect time.Duration
	// MaxBody and BodyTimeout bound what starts a stream, and a line of a conversation, in bytes.
	MaxBody     int64
	BodyTimeout time.Duration
}

// Server answers the requests that are streams. It is safe for concurrent use.
type Server struct {
	cfg     Config
	client  sessionv1.SessionServiceClient
	streams *limit.Streams
	metrics *metrics
	log     *slog.Logger
}

// NewServer returns a Server that asks client and opens no more streams than streams allows.
func NewServer(cfg Config, client sessionv1.SessionServiceClient, streams *limit.Streams, log *slog.Logger) (*Server, error) {
	m, err := newMetrics()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, client: client, streams: streams, metrics: m, log: log}, nil
}

// keyHeader answers with the request's idempotency key.
const keyHeader = "Idempotency-Key"

// begin sends the headers of a stream.
func (s *Server) begin(o *output, src *source) error {
	h := o.w.Header()
	h.Set("Content-Type", o.enc.contentType())
	// A proxy that compresses may hold events back.
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // proxies in front shall not collect events
	if key := src.key(); key != "" {
		h.Set(keyHeader, key)
	}
	o.w.WriteHeader(http.StatusOK)
	o.buf = o.enc.begin(o.buf)
	return o.flush()
}

// output writes one stream. It is used by one goroutine.
type output struct {
	w       http.ResponseWriter
	control *http.ResponseController
	enc     encoder
	timeout time.Duration
	buf     []byte // what is not written yet
}

// maxBatch is how much is collected, in bytes, while messages are there without waiting.
const maxBatch = 16 << 10

// flush writes what was collected and gives it to the network, within the write timeout.
func (o *output) flush() error {
	// Without effect on writers that know no deadlines, as in tests of handlers alone.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if len(o.buf) > 0 {
		if _, err := o.w.Write(o.buf); err != nil {
			return err
		}
		if cap(o.buf) > 4*maxBatch { // One large event shall not cost memory for as long as the stream lasts.
			o.buf = nil
		}
		o.buf = o.buf[:0]
	}
	return o.control.Flush()
}

// pump writes a stream until it ends, its reader goes or the server stops.
func (s *Server) pump(ctx context.Context, o *output, src *source) {
	defer s.metrics.opened(ctx, src.rpc)()
	p := pumping{Server: s, o: o, by: metric.WithAttributes(attribute.String("rpc.method", src.rpc))}
	if err := p.run(ctx, src); err != nil {
		s.cut(ctx, src, err)
	}
}

// cut notes why a stream could not be written to its end.
func (s *Server) cut(ctx context.Context, src *source, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.metrics.slow.Add(ctx, 1, metric.WithAttributes(attribute.String("rpc.method", src.rpc)))
		s.log.WarnContext(ctx, "stream cut, its reader is too slow", "rpc", src.rpc, "write_timeout", s.cfg.WriteTimeout)
		return
	}
	s.log.DebugContext(ctx, "stream ended by its reader", "rpc", src.rpc, "error", err)
}
