package auth

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/access"
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

// HTTP returns the context of an HTTP request with its principal. The context ends when the credential does; Ended has
// the error then. The caller calls stop when it has answered. At a resource, an address of this server, tokens are good
// that an issuer made for it alone; "" stands for no resource.
func (a *Authenticator) HTTP(r *http.Request, resource string) (ctx context.Context, stop func(), err error) {
	c, err := credential(r.Header.Values(headerBearer), r.Header.Values(headerKey))
	if err != nil {
		return nil, nil, err
	}
	if c == "" && a.mode == Auto && forwarded(r.Header.Values) {
		return nil, nil, errForwarded
	}
	p, err := a.authenticate(r.Context(), c, resource)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop = a.watch(principal.With(r.Context(), p), c, p)
	return ctx, stop, nil
}

// forwarded reports whether a proxy passed on a request. A listener on loopback is not only this machine's then.
func forwarded(values func(name string) []string) bool {
	for _, name := range []string{"forwarded", "x-forwarded-for", "x-real-ip", "via"} {
		if len(values(name)) > 0 {
			return true
		}
	}
	return false
}

// anonymous reports whether a method needs no principal: health checks, reflection and open RPCs.
func anonymous(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.") || access.Open(method)
}

// rpc returns the credential of an RPC, and its principal.
func (a *Authenticator) rpc(ctx context.Context) (string, principal.Principal, error) {
	c, err := credential(metadata.ValueFromIncomingContext(ctx, headerBearer), metadata.ValueFromIncomingContext(ctx, headerKey))
	if err != nil {
		return "", principal.Principal{}, err
	}
	if c == "" && a.mode == Auto && forwarded(func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }) {
		return "", principal.Principal{}, errForwarded
	}
	p, err := a.Authenticate(ctx, c)
	return c, p, err
}

// UnaryServer returns the interceptor of a listener for clients. It puts the principal into the context.
func (a *Authenticator) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if anonymous(info.FullMethod) {
			return next(ctx, req)
		}
		_, p, err := a.rpc(ctx)
		if err != nil {
			return nil, err
		}
		return next(principal.With(ctx, p), req)
	}
}

// StreamServer is UnaryServer for streams. A stream ends with its credential.
func (a *Authenticator) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if anonymous(info.FullMethod) {
			return next(srv, ss)
		}
		c, p, err := a.rpc(ss.Context())
		if err != nil {
			return err
		}
		ctx, stop := a.watch(principal.With(ss.Context(), p), c, p)
		defer stop()
		if err = next(srv, stream{ss, ctx}); err != nil {
			return cmp.Or(Ended(ctx), err)
		}
		return nil
	}
}

type stream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream is asked for its context
}

func (s stream) Context() context.Context { return s.ctx }

// RecvMsg takes nothing more once the credential has ended, whatever the handler does about its context.
func (s stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return Ended(s.ctx)
}

// SendMsg sends nothing more once the credential has ended.
func (s stream) SendMsg(m any) error {
	if err := Ended(s.ctx); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}
