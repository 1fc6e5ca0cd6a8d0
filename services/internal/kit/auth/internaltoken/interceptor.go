package internaltoken

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// MetadataKey is the key of the token in the metadata between services. It is not authorization, which is a
// client's.
const MetadataKey = "fairlead-internal-token"

// UnaryClient returns the interceptor that sends a token for the context's principal. Calls without one are made
// as the fallback; nil sends them without a token.
func (k *Keys) UnaryClient(fallback *principal.Principal) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := k.send(ctx, method, fallback)
		if err != nil {
			return err
		}
		return next(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient is UnaryClient for streams.
func (k *Keys) StreamClient(fallback *principal.Principal) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := k.send(ctx, method, fallback)
		if err != nil {
			return nil, err
		}
		return next(ctx, desc, cc, method, opts...)
	}
}

// send puts the token into the outgoing metadata. It replaces an existing one.
func (k *Keys) send(ctx context.Context, method string, fallback *principal.Principal) (context.Context, error) {
	p, ok := principal.From(ctx)
	switch {
	case exempt(method), !ok && fallback == nil && !access.Open(method):
		return ctx, nil
	case access.Open(method): // the token shows only that a service calls
		p = principal.Service(principal.Default().Tenant, principal.Default().User)
	case !ok:
		p = *fallback
	}
	token, err := k.Mint(p, audienceOf(method))
	if err != nil {
		return nil, err
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	if md == nil {
		md = metadata.MD{}
	}
	md[MetadataKey] = []string{token}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// UnaryServer returns the interceptor of a peer listener: it puts the token's principal into the context, and
// answers UNAUTHENTICATED to a call without a valid token. Health checks and reflection need none.
func (k *Keys) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := k.receive(ctx, info.FullMethod)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamServer is UnaryServer for streams.
func (k *Keys) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := k.receive(ss.Context(), info.FullMethod)
		if err != nil {
			return err
		}
		return next(srv, stream{ss, ctx})
	}
}

func exempt(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.")
}

func (k *Keys) receive(ctx context.Context, method string) (context.Context, error) {
	if exempt(method) {
		return ctx, nil
	}
	values := metadata.ValueFromIncomingContext(ctx, MetadataKey)
	if len(values) != 1 {
		return nil, apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonInternalTokenMissing,
			"The call carries no internal token. This listener is for the services of Fairlead; clients call the public one.")
	}
	p, err := k.Verify(values[0], audienceOf(method))
	if err != nil {
		return nil, apierr.New(codes.Unauthenticated, apierr.Domain, apierr.ReasonInternalTokenInvalid, "The internal token is refused: "+err.Error()+".")
	}
	if access.Open(method) {
		return ctx, nil
	}
	return principal.With(ctx, p), nil
}

type stream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream is asked for its context
}

func (s stream) Context() context.Context { return s.ctx }
