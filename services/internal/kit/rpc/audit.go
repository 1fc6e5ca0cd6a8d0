package rpc

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Auditor may be implemented by a Component. It is told of each call whose caller is known, also of calls that
// the access rules refuse. An error replaces the call's answer.
type Auditor interface {
	Audit(ctx context.Context, c AuditedCall) error
}

// AuditedCall is a call that has ended. A stream counts as ended with its first answer.
type AuditedCall struct {
	Method   string // as /package.Service/Method
	Request  any    // of a stream: the first message
	Response any    // nil after an error
	Client   string // the address of the caller's own host, as far as it is known
	Err      error
}

// auditorOf returns the component that keeps the audit log, or nil.
func auditorOf(components []Component) Auditor {
	for _, c := range components {
		if a, ok := c.(Auditor); ok {
			return a
		}
	}
	return nil
}

// clientKey is the metadata in which a gateway passes its client's address on to peers.
const clientKey = "fairlead-client"

// partKey is the metadata of a call that belongs to a request of a client which an earlier call has brought.
const partKey = "fairlead-part"

type clientRequest struct{}

// request is a request of a client, for which a gateway may make several calls.
type request struct {
	address string      // of the client
	brought atomic.Bool // by an earlier call
}

// WithClient returns the context of a client's request. Its calls to peers carry the address of the client, and all but the
// first say that they are parts of one request.
func WithClient(ctx context.Context, address string) context.Context {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return context.WithValue(ctx, clientRequest{}, &request{address: address})
}

// Client returns the address of the client of a call or request, or "" if it is not known.
func Client(ctx context.Context) string {
	if r, ok := ctx.Value(clientRequest{}).(*request); ok {
		return r.address
	}
	return ""
}

// isPart reports whether a call is a further one of its request. Only those of users count, and tools counts none.
func (r *request) isPart(ctx context.Context, method string) bool {
	p, ok := principal.From(ctx)
	if !ok || p.Role >= principal.RoleService || strings.HasPrefix(method, "/fairlead.tools.") {
		return false
	}
	return r.brought.Swap(true)
}

type partOf struct{}

// IsPart reports whether a call belongs to a request of a client that another call has brought, so that it counts as no
// request. Only peers can say so.
func IsPart(ctx context.Context) bool { return ctx.Value(partOf{}) != nil }

// passClient sends what the context knows of the client's request, and nothing else about it.
func passClient(ctx context.Context, method string) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx)
	r, known := ctx.Value(clientRequest{}).(*request)
	if !known && len(md.Get(clientKey)) == 0 && len(md.Get(partKey)) == 0 {
		return ctx
	}
	if !ok {
		md = metadata.MD{}
	}
	md = md.Copy()
	delete(md, clientKey)
	delete(md, partKey)
	if known {
		md.Set(clientKey, r.address)
		if r.isPart(ctx, method) {
			md.Set(partKey, "1")
		}
	}
	return metadata.NewOutgoingContext(ctx, md)
}

func passClientUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return next(passClient(ctx, method), method, req, reply, cc, opts...)
}

func passClientStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return next(passClient(ctx, method), desc, cc, method, opts...)
}

type identityKey struct{}

// Identify says in which tenant a call of an open RPC acts, and by which credential, such as triggers/{trigger}. The
// handler calls it once the secret in the request is right. A call that is not identified is in no audit log.
func Identify(ctx context.Context, tenant, credential string) {
	if c, ok := ctx.Value(identityKey{}).(*identity); ok {
		c.known.Store(&principal.Principal{Tenant: tenant, Credential: credential})
	}
}

// Identified returns what the handler of an open RPC has said about its caller: a principal without a user.
func Identified(ctx context.Context) (principal.Principal, bool) {
	if c, ok := ctx.Value(identityKey{}).(*identity); ok {
		if p := c.known.Load(); p != nil {
			return *p, true
		}
	}
	return principal.Principal{}, false
}

type identity struct {
	known atomic.Pointer[principal.Principal]
}

// identifiable returns the context of a call. An open RPC's handler can identify its caller in it.
func identifiable(ctx context.Context, method string) context.Context {
	if !access.Open(method) {
		return ctx
	}
	return context.WithValue(ctx, identityKey{}, &identity{})
}

// auditing tells an auditor of the calls on a face, and gives their contexts the client's address.
type auditing struct {
	to    Auditor
	peers bool // callers are peers, which pass their client's address on
	// proxies name the client of a call of theirs.
	proxies proxies
}

// request returns the context of a call, with what is known of the client's request.
func (a auditing) request(ctx context.Context, method, client string) context.Context {
	if a.peers && len(metadata.ValueFromIncomingContext(ctx, partKey)) > 0 {
		ctx = context.WithValue(ctx, partOf{}, true)
	}
	return identifiable(WithClient(ctx, client), method)
}

// client returns the address of a call's client.
func (a auditing) client(ctx context.Context) string {
	if passed := metadata.ValueFromIncomingContext(ctx, clientKey); a.peers && len(passed) == 1 {
		return passed[0]
	}
	return a.proxies.ofCall(ctx)
}

func (a auditing) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	client := a.client(ctx)
	ctx = a.request(ctx, info.FullMethod, client)
	resp, err := next(ctx, req)
	if a.to == nil {
		return resp, err
	}
	call := AuditedCall{Method: info.FullMethod, Request: req, Client: client, Err: err}
	if err == nil {
		call.Response = resp
	}
	if failed := a.to.Audit(ctx, call); failed != nil && err == nil {
		return nil, failed
	}
	return resp, err
}

func (a auditing) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	client := a.client(ss.Context())
	ss = contextStream{ss, a.request(ss.Context(), info.FullMethod, client)}
	if a.to == nil {
		return next(srv, ss)
	}
	s := &auditedStream{ServerStream: ss, to: a.to, call: AuditedCall{Method: info.FullMethod, Client: client}}
	err := next(srv, s)
	return s.end(err, nil)
}

// auditedStream tells of a stream once: at its first answer or at its end.
type auditedStream struct {
	grpc.ServerStream
	to Auditor

	mu   sync.Mutex
	call AuditedCall
	told bool
}

// RecvMsg implements grpc.ServerStream.
func (s *auditedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.call.Request == nil {
		s.call.Request = m
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *auditedStream) SendMsg(m any) error {
	if err := s.end(nil, m); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

func (s *auditedStream) end(err error, answer any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told {
		return err
	}
	s.told = true
	s.call.Err, s.call.Response = err, answer
	if failed := s.to.Audit(s.Context(), s.call); failed != nil && err == nil {
		return failed
	}
	return err
}
