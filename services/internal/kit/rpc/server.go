package rpc

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
)

// Limits of every connection.
const (
	// MaxMessage is the size in bytes of the largest message, in both directions.
	MaxMessage = 16 << 20

	maxStreams     = 1024     // per connection of a client
	maxPeerStreams = 1 << 16  // per connection of a peer: one carries all streams of a gateway
	maxHeaderList  = 64 << 10 // bytes of metadata
	keepaliveTime  = 30 * time.Second
	// Interval of the server's pings on a silent connection, so that a proxy in between does not cut it.
	quietTime     = 8 * time.Second
	keepaliveWait = 20 * time.Second
)

// NewPeerServer returns a server with the interceptors and limits of the peer face. The caller registers
// services, serves and stops it; programs use Serve instead. Components that know the owners of sessions are
// asked for them.
func NewPeerServer(log *slog.Logger, keys *internaltoken.Keys, components ...Component) *grpc.Server {
	return newServer(peerFace(keys), log, context.Background(), gateOf(components), auditing{to: auditorOf(components), peers: true})
}

// face is one of the faces of a service: how it knows its callers.
type face struct {
	name    string
	unary   grpc.UnaryServerInterceptor
	stream  grpc.StreamServerInterceptor
	streams uint32 // per connection
}

func peerFace(keys *internaltoken.Keys) face {
	return face{"peer", keys.UnaryServer(), keys.StreamServer(), maxPeerStreams}
}

func publicFace(a *auth.Authenticator) face {
	return face{"public", a.UnaryServer(), a.StreamServer(), maxStreams}
}

// gateOf returns the gate that asks the component that knows the owners of sessions.
func gateOf(components []Component) *access.Gate {
	for _, c := range components {
		if s, ok := c.(access.Sessions); ok {
			return access.NewGate(s)
		}
	}
	return access.NewGate(nil)
}

// interceptors returns what the calls on a face pass, from the outside in. The contexts of streams end with draining.
//
//nolint:revive,contextcheck // draining is not the context of this call, and the handlers' contexts are the server's
func (f face) interceptors(log *slog.Logger, draining context.Context, gate *access.Gate, audit auditing) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	v := newValidator()
	return []grpc.UnaryServerInterceptor{
			recoverUnary(log), logUnary(log, f.name), apierr.UnaryServer(log),
			f.unary, noteUnary, audit.unary, gate.UnaryCaller, requestIDUnary, v.unary, gate.UnaryRequest,
		}, []grpc.StreamServerInterceptor{
			recoverStream(log), logStream(log, f.name), apierr.StreamServer(log), drainStream(draining),
			f.stream, noteStream, audit.stream, gate.StreamCaller, requestIDStream, v.stream, gate.StreamRequest,
		}
}

// newServer makes the server of a face.
//
//nolint:revive // draining is not the context of this call
func newServer(f face, log *slog.Logger, draining context.Context, gate *access.Gate, audit auditing, o ...grpc.ServerOption) *grpc.Server {
	unary, stream := f.interceptors(log, draining, gate, audit)
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(FrameCodec{}),
		grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))),
		grpc.StatsHandler(otelgrpc.NewServerHandler(traced)),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(f.streams), grpc.MaxHeaderListSize(maxHeaderList),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietTime, Timeout: keepaliveWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 3, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.WaitForHandlers(true), // otherwise Stop returns while handlers still use what Close frees
	}, o...)...)
}

// traced leaves health checks and reflection out of traces and metrics, and RPCs that do not exist: their names are the
// client's, and each would be a series of its own. A client's trace is continued on the public face too: the gateway is
// such a client, and one turn must be one trace.
var traced = otelgrpc.WithFilter(filters.All(filters.None(filters.HealthCheck(), filters.ServicePrefix("grpc.reflection")), exists))

// exists reports whether an RPC is in a linked descriptor.
func exists(info *stats.RPCTagInfo) bool {
	name := protoreflect.FullName(strings.Replace(strings.TrimPrefix(info.FullMethodName, "/"), "/", ".", 1))
	_, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	return err == nil
}
