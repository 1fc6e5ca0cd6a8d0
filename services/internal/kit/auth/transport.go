package auth

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Headers with a credential. A client sends one of them: a bearer credential, or an API key.
const (
	headerBearer = "authorization"
	headerKey    = "x-api-key"
)

// credential returns the credential in the values of the two headers, or "" without one. Both headers may have the
// same one.
func credential(bearer, key []string) (string, error) {
	if len(bearer) > 1 || len(key) > 1 {
		return "", errMalformed
	}
	var c string
	if len(bearer) == 1 {
		scheme, value, _ := strings.Cut(bearer[0], " ")
		if c = strings.TrimSpace(value); !strings.EqualFold(scheme, "bearer") || c == "" {
			return "", errMalformed
		}
	}
	if len(key) == 1 {
		if !strings.HasPrefix(key[0], KeyPrefix) || c != "" && c != key[0] {
			return "", errMalformed
		}
		c = key[0]
	}
	return c, nil
}

// HTTP returns the principal of an HTTP request.
func (a *Authenticator) HTTP(r *http.Request) (principal.Principal, error) {
	c, err := credential(r.Header.Values(headerBearer), r.Header.Values(headerKey))
	if err != nil {
		return principal.Principal{}, err
	}
	if c == "" && a.mode == Auto && forwarded(r.Header) {
		return principal.Principal{}, errForwarded
	}
	return a.Authenticate(r.Context(), c)
}

// forwarded reports whether a proxy passed on a request. A listener on loopback is not only this machine's then.
func forwarded(h http.Header) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// rpc returns the context of an RPC with its principal. Health checks and reflection need none.
func (a *Authenticator) rpc(ctx context.Context, method string) (context.Context, error) {
	if strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.") {
		return ctx, nil
	}
	c, err := credential(metadata.ValueFromIncomingContext(ctx, headerBearer), metadata.ValueFromIncomingContext(ctx, headerKey))
	if err != nil {
		return nil, err
	}
	p, err := a.Authenticate(ctx, c)
	if err != nil {
		return nil, err
	}
	return principal.With(ctx, p), nil
}

// UnaryServer returns the interceptor of a listener for clients. It puts the principal into the context.
func (a *Authenticator) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := a.rpc(ctx, info.FullMethod)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamServer is UnaryServer for streams.
func (a *Authenticator) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := a.rpc(ss.Context(), info.FullMethod)
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
