package principal

import (
	"context"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// MetadataKey is the key of the principal in the metadata between peers, as
// JSON.
const MetadataKey = "fairlead-principal-bin"

// UnaryClient returns the interceptor that sends the context's principal. Calls without one are made as
// the fallback; nil sends them without a principal.
func UnaryClient(fallback *Principal) grpc.UnaryClientInterceptor {
	send := sender(fallback)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := send(ctx)
		if err != nil {
			return err
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient is UnaryClient for streams.
func StreamClient(fallback *Principal) grpc.StreamClientInterceptor {
	send := sender(fallback)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := send(ctx)
		if err != nil {
			return nil, err
		}
		return next(ctx, desc, cc, method, opts...)
	}
}

// sender puts a context's principal, or the fallback, into its outgoing metadata. It replaces an existing
// one, which is not trusted.
func sender(fallback *Principal) func(ctx context.Context) (context.Context, error) {
	var usual string
	var fault error
	if fallback != nil {
		usual, fault = encode(*fallback)
	}
	return func(ctx context.Context) (context.Context, error) {
		md, _ := metadata.FromOutgoingContext(ctx)
		md = md.Copy()
		delete(md, MetadataKey)
		s, err := usual, fault
		if p, ok := From(ctx); ok {
			s, err = encode(p)
		}
		if err != nil {
			return nil, err
		}
		if s != "" {
			md[MetadataKey] = []string{s}
		}
		return metadata.NewOutgoingContext(ctx, md), nil
	}
}

// UnaryPeer returns the interceptor of the peer face: it trusts the principal in the metadata, and answers
// UNAUTHENTICATED to a call without one or with a malformed one. Health checks and reflection need none.
func UnaryPeer() grpc.UnaryServerInterceptor { return unaryServer(fromMetadata) }

// StreamPeer is UnaryPeer for streams.
func StreamPeer() grpc.StreamServerInterceptor { return streamServer(fromMetadata) }

// UnaryPublic returns the interceptor of the public face: every caller is Default, whatever the metadata
// says.
func UnaryPublic() grpc.UnaryServerInterceptor { return unaryServer(everybody) }

// StreamPublic is UnaryPublic for streams.
func StreamPublic() grpc.StreamServerInterceptor { return streamServer(everybody) }

type source func(ctx context.Context, method string) (context.Context, error)

// lately caches the last decoded principal: mostly the next call has the same one. It is
// read-only.
var lately atomic.Pointer[struct {
	text      string
	principal Principal
}]

func everybody(ctx context.Context, _ string) (context.Context, error) {
	return With(ctx, Default()), nil
}

func fromMetadata(ctx context.Context, method string) (context.Context, error) {
	if strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.") {
		return ctx, nil
	}
	values := metadata.ValueFromIncomingContext(ctx, MetadataKey)
	switch len(values) {
	case 0:
		return nil, apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonPrincipalMissing,
			"the call carries no principal; this is an internal listener, send the metadata "+MetadataKey+" or use the public address")
	case 1:
	default:
		return nil, malformed("sent more than once")
	}
	if last := lately.Load(); last != nil && last.text == values[0] {
		return With(ctx, last.principal), nil
	}
	p, err := decode(values[0])
	if err != nil {
		return nil, malformed(err.Error())
	}
	lately.Store(&struct {
		text      string
		principal Principal
	}{values[0], p})
	return With(ctx, p), nil
}

func malformed(why string) error {
	return apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonPrincipalMalformed, "the metadata "+MetadataKey+" is malformed: "+why)
}

func unaryServer(from source) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := from(ctx, info.FullMethod)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

func streamServer(from source) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := from(ss.Context(), info.FullMethod)
		if err != nil {
			return err
		}
		return next(srv, stream{ss, ctx})
	}
}

type stream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream is asked for its context
}

func (s stream) Context() context.Context { return s.ctx }
