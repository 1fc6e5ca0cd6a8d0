package apierr

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// UnaryServer returns the interceptor that lets only errors of this package out of unary handlers; see Sanitize.
func UnaryServer(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		resp, err := next(ctx, req)
		if err != nil {
			return nil, Sanitize(ctx, log, info.FullMethod, err)
		}
		return resp, nil
	}
}

// StreamServer is UnaryServer for streams. Errors that grpc-go itself reports from receiving or sending (a message too
// large or malformed, a client gone) keep their code, because they are about the client's own bytes.
func StreamServer(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := next(srv, transportStream{ss}); err != nil {
			return Sanitize(ss.Context(), log, info.FullMethod, err)
		}
		return nil
	}
}

// Sanitize returns what a client may see of err, an error of a handler of method: an error of this package
// without the text that wraps it; CANCELLED or DEADLINE_EXCEEDED for the end of ctx; otherwise INTERNAL with
// a fixed text and an id under which err is logged.
func Sanitize(ctx context.Context, log *slog.Logger, method string, err error) error {
	if ours := (*Error)(nil); errors.As(err, &ours) {
		return ours
	}
	if c, ok := contextCode(ctx, err); ok {
		return status.Error(c, contextText[c])
	}
	if st, ok := status.FromError(err); ok && st.Code() == codes.Unimplemented {
		return newError(codes.Unimplemented, Domain, ReasonUnimplemented, "this server does not implement "+method)
	}
	request := id.New()
	log.ErrorContext(ctx, "request failed inside", "method", method, "request_id", request, "error", err)
	return Internal(request)
}

// Internal returns the error for a fault that the caller cannot fix; request is the id under which it is
// logged.
func Internal(request string) error {
	return newError(codes.Internal, Domain, ReasonInternal,
		"the server failed inside while working on this request; look for request id "+request+" in its log", requestInfo(request))
}

var contextText = map[codes.Code]string{
	codes.Canceled:         "the caller cancelled the request",
	codes.DeadlineExceeded: "the request's deadline passed before it was done",
}

// contextCode reports whether err is the end of a context: our own or, when ours has ended too, a peer's
// report of it.
func contextCode(ctx context.Context, err error) (codes.Code, bool) {
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled, true
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded, true
	case ctx.Err() == nil:
		return codes.OK, false
	}
	c := Code(err)
	_, ok := contextText[c]
	return c, ok
}

// transportStream converts grpc-go's errors about the client's bytes into errors of this
// package.
type transportStream struct{ grpc.ServerStream }

func (s transportStream) RecvMsg(m any) error { return transport(s.ServerStream.RecvMsg(m)) }
func (s transportStream) SendMsg(m any) error { return transport(s.ServerStream.SendMsg(m)) }

func transport(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.Canceled || st.Code() == codes.DeadlineExceeded {
		return err
	}
	e := newError(st.Code(), Domain, ReasonTransport, st.Message())
	e.cause = err
	return e
}
