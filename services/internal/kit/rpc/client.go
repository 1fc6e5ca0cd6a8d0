package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// DefaultTimeout is the deadline of unary calls whose context has none.
const DefaultTimeout = time.Minute

type dialConfig struct {
	keys     *internaltoken.Keys
	files    *certificate.Files
	fallback *principal.Principal
	extra    []grpc.DialOption
}

// DialOption is an option of Dial.
type DialOption func(*dialConfig)

// WithKeys sends an internal token for the principal of each call: the connection is to a peer listener.
func WithKeys(k *internaltoken.Keys) DialOption { return func(c *dialConfig) { c.keys = k } }

// WithTLS makes calls over TLS, if the files have authorities for that.
func WithTLS(f *certificate.Files) DialOption { return func(c *dialConfig) { c.files = f } }

// WithFallback makes calls without a principal as p, instead of sending no token.
func WithFallback(p principal.Principal) DialOption { return func(c *dialConfig) { c.fallback = &p } }

// WithDialOptions passes options on to grpc-go.
func WithDialOptions(o ...grpc.DialOption) DialOption {
	return func(c *dialConfig) { c.extra = append(c.extra, o...) }
}

// Dial returns a connection to a service at addr ("host:port", or the comma-separated addresses of its
// replicas). It connects at the first call, and again whenever the connection is lost. Calls to a service
// that cannot be reached return UNAVAILABLE. The caller closes the connection.
//
// Calls are spread over the replicas that answer. If a dying replica answers a unary call with UNAVAILABLE,
// the call is repeated at the next replica if that is safe. The caller must reopen a stream itself.
func Dial(addr string, opts ...DialOption) (*grpc.ClientConn, error) {
	if addr == "" {
		return nil, fmt.Errorf("dial a service: the address is empty")
	}
	target := addr
	if strings.Contains(addr, ",") {
		addresses, err := replicas(addr)
		if err != nil {
			return nil, fmt.Errorf("dial %q: %w", addr, err)
		}
		var spread []grpc.DialOption
		target, spread = several(addresses)
		opts = append([]DialOption{WithDialOptions(spread...)}, opts...)
	}
	conn, err := dial(target, opts...)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	return conn, nil
}

func dial(target string, opts ...DialOption) (*grpc.ClientConn, error) {
	c := dialConfig{}
	for _, o := range opts {
		o(&c)
	}
	unary, streams := c.interceptors()
	transport := insecure.NewCredentials()
	if c.files.Dials() {
		transport = c.files.Credentials(false)
	}
	return grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(traced)),
		grpc.WithChainUnaryInterceptor(unary...),
		grpc.WithChainStreamInterceptor(streams...),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithMaxHeaderListSize(maxHeaderList),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveWait}),
		grpc.WithConnectParams(connecting),
		grpc.WithIdleTimeout(0), // peers are few; a kept connection makes the first call after a pause as fast as the others
	}, c.extra...)...)
}

// interceptors returns what calls pass, from the outside in.
func (c *dialConfig) interceptors() ([]grpc.UnaryClientInterceptor, []grpc.StreamClientInterceptor) {
	unary, streams := []grpc.UnaryClientInterceptor{deadline(DefaultTimeout)}, []grpc.StreamClientInterceptor{}
	if c.keys != nil {
		unary, streams = append(unary, c.keys.UnaryClient(c.fallback), passClientUnary), append(streams, c.keys.StreamClient(c.fallback), passClientStream)
	}
	return unary, streams
}

// deadline gives unary calls without a deadline one of d.
func deadline(d time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
}

// AsService returns a connection whose calls are made by a service of Fairlead, for the tenant and the user of
// their context. A service reaches its peers through it, and has checked before what the user may do.
func AsService(to grpc.ClientConnInterface) grpc.ClientConnInterface {
	return actingConn{to, func(ctx context.Context) context.Context {
		p, ok := principal.From(ctx)
		if !ok {
			return ctx
		}
		p.Role, p.Scopes = principal.RoleService, nil
		return principal.With(ctx, p)
	}}
}

// As returns a connection whose calls are made by p, unless their context has a principal.
func As(to grpc.ClientConnInterface, p principal.Principal) grpc.ClientConnInterface {
	return actingConn{to, func(ctx context.Context) context.Context {
		if _, ok := principal.From(ctx); ok {
			return ctx
		}
		return principal.With(ctx, p)
	}}
}

// actingConn sets the principal of each call.
type actingConn struct {
	grpc.ClientConnInterface
	act func(context.Context) context.Context
}

// Invoke implements grpc.ClientConnInterface.
func (c actingConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(c.act(ctx), method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c actingConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(c.act(ctx), desc, method, opts...)
}

// WithErrors returns a connection whose errors went through translate, which keeps nil.
func WithErrors(to grpc.ClientConnInterface, translate func(error) error) grpc.ClientConnInterface {
	return errorConn{to, translate}
}

type errorConn struct {
	grpc.ClientConnInterface
	translate func(error) error
}

func (c errorConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.translate(c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...))
}

func (c errorConn) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, d, method, opts...)
	return errorStream{s, c.translate}, c.translate(err)
}

type errorStream struct {
	grpc.ClientStream
	translate func(error) error
}

func (s errorStream) RecvMsg(m any) error { return s.translate(s.ClientStream.RecvMsg(m)) }
func (s errorStream) SendMsg(m any) error { return s.translate(s.ClientStream.SendMsg(m)) }
