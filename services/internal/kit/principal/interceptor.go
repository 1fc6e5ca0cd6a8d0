package principal

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// MetadataKey is where a principal travels between peers, as JSON.
const MetadataKey = "fairlead-principal-bin"

// UnaryClient returns the interceptor that sends the context's principal along.
// With a fallback, calls whose context has no principal are made in its name; nil sends them without one.
func UnaryClient(fallback *Principal) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := outgoing(ctx, fallback)
		if err != nil {
			return err
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient is UnaryClient for streams.
func StreamClient(fallback *Principal) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := outgoing(ctx, fallback)
		if err != nil {
			return nil, err
		}
		return next(ctx, desc, cc, method, opts...)
	}
}

// outgoing replaces, never adds: a principal already in the outgoing metadata is not ours to trust.
func outgoing(ctx context.Context, fallback *Principal) (context.Context, error) {
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	delete(md, MetadataKey)
	p, ok := From(ctx)
	if !ok && fallback != nil {
		p, ok = *fallback, true
	}
	if ok {
		s, err := encode(p)
		if err != nil {
			return nil, err
		}
		md[MetadataKey] = []string{s}
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// UnaryPeer returns the interceptor of the peer face: it believes the principal in the metadata, and answers
// UNAUTHENTICATED to a call without one or with a malformed one. Health checks and reflection need none.
func UnaryPeer() grpc.UnaryServerInterceptor { return unaryServer(fromMetadata) }

// StreamPeer is UnaryPeer for streams.
func StreamPeer() grpc.StreamServerInterceptor { return streamServer(fromMetadata) }

// UnaryPublic returns the interceptor of the public face: everybody is Default, whatever the metadata says.
func UnaryPublic() grpc.UnaryServerInterceptor { return unaryServer(everybody) }

// StreamPublic is UnaryPublic for streams.
func StreamPublic() grpc.StreamServerInterceptor { return streamServer(everybody) }

type source func(ctx context.Context, method string) (context.Context, error)

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
	p, err := decode(values[0])
	if err != nil {
		return nil, malformed(err.Error())
	}
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
