package rpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/fullstorydev/grpchan"
	"github.com/fullstorydev/grpchan/inprocgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
)

// Local connects the services of one program: a call is a function call in another goroutine, and its messages are
// copied in memory. Pass Conn to components as their peers and Local to Serve, which closes it.
//
// Calls pass the same interceptors as over the network, and end with the same errors.
type Local struct {
	// Conn reaches the peer face. Calls without a principal are refused.
	Conn grpc.ClientConnInterface
	// Keys are those of the peer face.
	Keys *internaltoken.Keys

	channel  *inprocgrpc.Channel
	callers  stats.Handler
	handlers stats.Handler
	serving  chan struct{}   // closed once the services are registered, or the end has come
	cut      context.Context //nolint:containedctx // its end cuts every call
	cutCalls context.CancelFunc

	mu      sync.Mutex // guards what follows
	open    sync.Once  // closes serving
	refuses bool       // further calls
	running sync.WaitGroup
}

// NewLocal returns a Local, whose calls carry tokens of these keys. Calls wait until Serve is running.
func NewLocal(keys *internaltoken.Keys) *Local {
	l := &Local{
		Keys: keys, channel: new(inprocgrpc.Channel).WithCloner(copies{}), serving: make(chan struct{}),
		callers: otelgrpc.NewClientHandler(traced), handlers: otelgrpc.NewServerHandler(traced),
	}
	l.cut, l.cutCalls = context.WithCancel(context.Background())
	unary, streams := (&dialConfig{keys: keys}).interceptors()
	l.Conn = grpchan.InterceptClientConnStream(grpchan.InterceptClientConnUnary(localConn{l}, unary...), streams...)
	return l
}

// serve registers services, and lets calls in. Their interceptors are those of a face.
func (l *Local) serve(register func(grpc.ServiceRegistrar), unary []grpc.UnaryServerInterceptor, streams []grpc.StreamServerInterceptor) {
	unary, streams = append([]grpc.UnaryServerInterceptor{l.handleUnary}, unary...), append([]grpc.StreamServerInterceptor{l.handleStream}, streams...)
	register(grpchan.WithStreamInterceptors(grpchan.WithUnaryInterceptors(l.channel, unary...), streams...))
	l.open.Do(func() { close(l.serving) })
}

// GracefulStop refuses further calls, and returns when the running ones have ended.
func (l *Local) GracefulStop() {
	l.mu.Lock()
	l.refuses = true
	l.mu.Unlock()
	l.open.Do(func() { close(l.serving) })
	l.running.Wait()
}

// Stop cancels the running calls, and is GracefulStop otherwise.
func (l *Local) Stop() {
	l.cutCalls()
	l.GracefulStop()
}

// GetServiceInfo returns what is registered.
func (l *Local) GetServiceInfo() map[string]grpc.ServiceInfo { return l.channel.GetServiceInfo() }

// Close stops at once. Serve calls it; a program that fails before Serve must call it.
func (l *Local) Close() error {
	l.Stop()
	return nil
}

// enter counts a call that runs. The caller calls l.running.Done at its end, unless the call is refused.
func (l *Local) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses {
		return errLocalStopped
	}
	l.running.Add(1)
	return nil
}

var errLocalStopped = status.Error(codes.Unavailable, "the program is stopping")

// handleUnary is outside of the other interceptors of a call.
func (l *Local) handleUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.running.Done()
	ctx, end := observe(ctx, l.handlers, &stats.Begin{BeginTime: time.Now()}, info.FullMethod)
	resp, err := next(ctx, req)
	end(err)
	return resp, err
}

// handleStream is handleUnary for streams.
func (l *Local) handleStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.running.Done()
	begin := &stats.Begin{BeginTime: time.Now(), IsClientStream: info.IsClientStream, IsServerStream: info.IsServerStream}
	ctx, end := observe(ss.Context(), l.handlers, begin, info.FullMethod)
	err := next(srv, handled{contextStream{ss, ctx}})
	end(err)
	return err
}

// handled sends a header as gRPC does, also an empty one: it may be what the caller waits for.
type handled struct{ contextStream }

// SendHeader implements grpc.ServerStream.
func (s handled) SendHeader(md metadata.MD) error {
	return s.contextStream.SendHeader(metadata.Join(md, metadata.Pairs("content-type", "application/grpc")))
}

// SendMsg implements grpc.ServerStream. To a caller that has left it fails as in gRPC, with the end of the context.
func (s handled) SendMsg(m any) error {
	err := s.contextStream.SendMsg(m)
	if ended := s.Context().Err(); err != nil && ended != nil {
		return status.FromContextError(ended).Err()
	}
	return err
}

// observe tells a handler of statistics of a call, and returns the function that tells of its end.
func observe(ctx context.Context, h stats.Handler, begin *stats.Begin, method string) (context.Context, func(error)) {
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method})
	h.HandleRPC(ctx, begin)
	return ctx, func(err error) {
		h.HandleRPC(ctx, &stats.End{Client: begin.Client, BeginTime: begin.BeginTime, EndTime: time.Now(), Error: err})
	}
}

// localConn makes the calls of a Local.
type localConn struct{ *Local }

// begin returns the context of a call, and the function that ends it once and returns its error as gRPC does.
func (l localConn) begin(ctx context.Context, begin *stats.Begin, method string) (context.Context, func(error) error, error) {
	select {
	case <-l.serving:
	case <-ctx.Done():
		return nil, nil, status.FromContextError(ctx.Err()).Err()
	}
	if l.cut.Err() != nil {
		return nil, nil, errLocalStopped
	}
	begin.Client, begin.BeginTime = true, time.Now()
	ctx, ended := observe(ctx, l.callers, begin, method)
	ctx, cancel := context.WithCancelCause(ctx)
	uncut := context.AfterFunc(l.cut, func() { cancel(errLocalStopped) })
	var once sync.Once
	return ctx, func(err error) error {
		err = asReceived(ctx, err)
		once.Do(func() {
			uncut()
			cancel(err)
			ended(err)
		})
		return err
	}, nil
}

// asReceived returns an error of a call as its caller gets it over the network: a status, without what it wraps.
func asReceived(ctx context.Context, err error) error {
	s, ok := status.FromError(err)
	if ended := ctx.Err(); !ok && ended != nil {
		s = status.FromContextError(ended)
	} else if !ok {
		s = status.FromContextError(err)
	}
	if cause, ok := status.FromError(context.Cause(ctx)); ok && s.Code() == codes.Canceled && cause.Code() != codes.OK {
		s = cause // why the call was cancelled here
	}
	return s.Err()
}

// Invoke implements grpc.ClientConnInterface.
func (l localConn) Invoke(ctx context.Context, method string, req, reply any, opts ...grpc.CallOption) error {
	ctx, end, err := l.begin(ctx, &stats.Begin{}, method)
	if err != nil {
		return err
	}
	if err := l.enter(); err != nil {
		return end(err)
	}
	defer l.running.Done()          // the end of the program cuts no call whose answer is under way
	own, err := copies{}.Clone(req) // the caller may change the request once the call has ended, even when the handler runs on
	if err == nil {
		err = l.channel.Invoke(ctx, method, own, reply, opts...)
	}
	return end(err)
}

// NewStream implements grpc.ClientConnInterface.
func (l localConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, end, err := l.begin(ctx, &stats.Begin{IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}, method)
	if err != nil {
		return nil, err
	}
	s, err := l.channel.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, end(err)
	}
	context.AfterFunc(ctx, func() { _ = end(ctx.Err()) }) // the caller may never receive the end
	return &localStream{s, !desc.ClientStreams, !desc.ServerStreams, end}, nil
}

// localStream is a stream whose errors are those of gRPC.
type localStream struct {
	grpc.ClientStream
	once   bool // the first request is the last one
	single bool // the first answer is the last one
	end    func(error) error
}

// RecvMsg implements grpc.ClientStream.
func (s *localStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF):
		_ = s.end(nil)
		return io.EOF
	case err != nil || s.single:
		return s.end(err)
	}
	return nil
}

// SendMsg implements grpc.ClientStream. After the end of the call it returns io.EOF, or nil for the only request.
func (s *localStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	switch over := errors.Is(err, io.EOF); {
	case over && s.once:
		return nil // the answer says why
	case err == nil || over:
		return err
	}
	return s.end(err)
}

// Header implements grpc.ClientStream.
func (s *localStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, asReceived(s.Context(), err)
}
