package rpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// contextStream is a server stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream is asked for its context
}

func (s contextStream) Context() context.Context { return s.ctx }

// recovered logs a panic of method and returns the caller's error.
func recovered(ctx context.Context, log *slog.Logger, method string, p any) error {
	request := id.New()
	log.ErrorContext(ctx, "panic in a request", "method", method, "request_id", request, "panic", p, "stack", string(debug.Stack()))
	return apierr.Internal(request)
}

func recoverUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				resp, err = nil, recovered(ctx, log, info.FullMethod, p)
			}
		}()
		return next(ctx, req)
	}
}

func recoverStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = recovered(ss.Context(), log, info.FullMethod, p)
			}
		}()
		return next(srv, ss)
	}
}

// call has the data that the log line of an RPC gets from further down the chain. Only the interceptor below
// sets its fields.
type call struct{ tenant atomic.Pointer[string] }

type callKey struct{}

// note adds the tenant to the log line.
func note(ctx context.Context) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		t := principal.Tenant(ctx)
		c.tenant.Store(&t)
	}
}

func noteUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	note(ctx)
	return next(ctx, req)
}

func noteStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	note(ss.Context())
	return next(srv, ss)
}

func logUnary(log *slog.Logger, face string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		if quiet(info.FullMethod) {
			return next(ctx, req)
		}
		ctx, end := begin(ctx, log, face, info.FullMethod)
		code := codes.Internal // remains if next panics
		defer func() { end(code, err) }()
		resp, err = next(ctx, req)
		code = apierr.Code(err)
		return resp, err
	}
}

func logStream(log *slog.Logger, face string) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		if quiet(info.FullMethod) {
			return next(srv, ss)
		}
		ctx, end := begin(ss.Context(), log, face, info.FullMethod)
		code := codes.Internal
		defer func() { end(code, err) }()
		err = next(srv, contextStream{ss, ctx})
		code = apierr.Code(err)
		return err
	}
}

// quiet reports whether calls of method are too frequent and too dull to be logged.
func quiet(method string) bool { return strings.HasPrefix(method, "/grpc.health.") }

// begin returns the context of a call and the function that writes its log
// line.
func begin(ctx context.Context, log *slog.Logger, face, method string) (context.Context, func(codes.Code, error)) {
	start, c := time.Now(), &call{}
	ctx = context.WithValue(ctx, callKey{}, c)
	return ctx, func(code codes.Code, err error) {
		attrs := []slog.Attr{
			slog.String("method", method), slog.String("code", code.String()),
			slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000), slog.String("face", face),
		}
		if p, ok := peer.FromContext(ctx); ok {
			attrs = append(attrs, slog.String("peer", p.Addr.String()))
		}
		if t := c.tenant.Load(); t != nil && *t != "" {
			attrs = append(attrs, slog.String("tenant", *t))
		}
		if reason := apierr.Reason(err); reason != "" {
			attrs = append(attrs, slog.String("reason", reason))
		}
		log.LogAttrs(ctx, levelOf(code), "rpc", attrs...)
	}
}

// levelOf returns the level of a log line: faults of the server stand out, faults
// of callers do not.
func levelOf(code codes.Code) slog.Level {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelError
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// errDraining is the cause of the end of a stream's context when the server
// stops.
var errDraining = errors.New("rpc: the server is stopping")

// drainStream ends the contexts of streams with draining, and tells their callers the cause.
func drainStream(draining context.Context) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, cancel := context.WithCancelCause(ss.Context())
		defer cancel(nil)
		stop := context.AfterFunc(draining, func() { cancel(errDraining) })
		defer stop()
		err := next(srv, contextStream{ss, ctx})
		if err != nil && errors.Is(context.Cause(ctx), errDraining) && apierr.Code(err) != codes.Unavailable && isEnd(err) { //nolint:contextcheck // this asks why the stream ended
			return apierr.New(codes.Unavailable, apierr.Domain, apierr.ReasonDraining,
				"the server is stopping; connect again and go on from where this stream ended", apierr.RetryAfter(time.Second))
		}
		return err
	}
}

// isEnd reports whether err is a handler's error at the end of its context.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errDraining) || apierr.Code(err) == codes.Canceled
}
