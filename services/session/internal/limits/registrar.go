package limits

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Registrar returns a registrar that registers services with r, whose requests the limiter has to admit. The
// interceptors of the server run first, so the principal is known.
func (l *Limiter) Registrar(r grpc.ServiceRegistrar) grpc.ServiceRegistrar { return registrar{r, l} }

type registrar struct {
	grpc.ServiceRegistrar
	l *Limiter
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	limited := *desc
	limited.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		limited.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: r.l.unary(m)}
	}
	limited.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, s := range desc.Streams {
		limited.Streams[i] = s
		limited.Streams[i].Handler = r.l.stream(s)
	}
	r.ServiceRegistrar.RegisterService(&limited, impl)
}

// unary returns the handler of a unary RPC with the limiter around the service's own code.
func (l *Limiter) unary(m grpc.MethodDesc) grpc.MethodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
		admit := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			admitted := func(ctx context.Context, req any) (any, error) {
				if err := l.Request(ctx); err != nil {
					return nil, err
				}
				return next(ctx, req)
			}
			if around == nil {
				return admitted(ctx, req)
			}
			return around(ctx, req, info, admitted)
		}
		return m.Handler(srv, ctx, dec, admit)
	}
}

// stream returns the handler of a streaming RPC with the limiter around it. What a client's stream sends counts as an
// upload.
func (l *Limiter) stream(s grpc.StreamDesc) grpc.StreamHandler {
	return func(srv any, ss grpc.ServerStream) error {
		if err := l.Request(ss.Context()); err != nil {
			return err
		}
		release, err := l.Stream(ss.Context())
		if err != nil {
			return err
		}
		defer release()
		if s.ClientStreams && !s.ServerStreams {
			ss = upload{ss, l}
		}
		return s.Handler(srv, ss)
	}
}

// upload counts the bytes of a client's stream.
type upload struct {
	grpc.ServerStream
	l *Limiter
}

// RecvMsg implements grpc.ServerStream.
func (u upload) RecvMsg(m any) error {
	if err := u.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if msg, ok := m.(proto.Message); ok {
		return u.l.Upload(u.Context(), proto.Size(msg))
	}
	return nil
}
