// Package wire has what the foreign protocols of the gateway share. Each protocol is one package beside this one: a
// pure function from the events of a session's log to the protocol's own, and one from its requests to our RPCs.
//
// A wire follows a session by sequence number, over StreamEvents, and survives a session service that goes away for
// a while. When that lasts too long, the HTTP connection is cut off: an answer that ends well would look finished.
package wire

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
)

// Config bounds the requests and streams of wires.
type Config struct {
	// Heartbeat is the interval of comments in a quiet stream; WriteTimeout is how long one write may take.
	Heartbeat, WriteTimeout time.Duration
	// Timeout bounds a request to a service; BodyTimeout and MaxBody bound a body.
	Timeout, BodyTimeout time.Duration
	MaxBody              int64
	// Patience is how long a stream waits for a session service that is away; zero: a minute.
	Patience time.Duration
}

// defaultPatience is enough for a restart, and for another replica to take over.
const defaultPatience = time.Minute

// Server is what all wires need of the session service. It is safe for concurrent use.
type Server struct {
	Config
	Sessions sessionv1.SessionServiceClient
	Log      *slog.Logger

	keys    sessionv1.KeyServiceClient
	streams *limit.Streams
	shared  stream.Shared
	metrics *stream.Metrics
}

// New returns a Server of the session service behind a connection.
func New(c Config, session grpc.ClientConnInterface, streams *limit.Streams, shared stream.Shared, log *slog.Logger) (*Server, error) {
	m, err := stream.NewMetrics()
	if err != nil {
		return nil, err
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	return &Server{
		Config: c, Sessions: sessionv1.NewSessionServiceClient(session), Log: log,
		keys: sessionv1.NewKeyServiceClient(session), streams: streams, shared: shared, metrics: m,
	}, nil
}

// Acquire counts a request of a client among the streams until its answer ends. The handler defers release. A wire
// acquires before a request changes anything.
func (s *Server) Acquire(r *http.Request) (release func(), err error) {
	if release, err = s.streams.Acquire(limit.Of(r)); err != nil {
		return nil, err
	}
	return idle.Until(r.Context(), release), nil
}

// Base returns the URL at which clients reach the server: the public one, or that of a request.
func Base(public string, r *http.Request) string {
	switch {
	case public != "":
		return strings.TrimSuffix(public, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	default:
		return "http://" + r.Host
	}
}
