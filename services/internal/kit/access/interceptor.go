package access

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Sessions knows which user a session belongs to.
type Sessions interface {
	// SessionOwner returns the user of `sessions/{session}` in the tenant of ctx, or "" if there is no such
	// session.
	SessionOwner(ctx context.Context, session string) (user string, err error)
	// SessionNotFound returns the error for a session that does not exist.
	SessionNotFound(session string) error
}

// Gate is the interceptors of one server.
type Gate struct{ owners *owners }

// NewGate returns the interceptors of a server. Without sessions it refuses requests that name one, except
// those of operators.
func NewGate(sessions Sessions) *Gate {
	if sessions == nil {
		return &Gate{}
	}
	return &Gate{newOwners(sessions)}
}

// UnaryCaller checks the caller's role and scopes.
func (*Gate) UnaryCaller(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := checkCaller(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// StreamCaller is UnaryCaller for streams.
func (*Gate) StreamCaller(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := checkCaller(ss.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, ss)
}

// UnaryRequest checks whether the caller may see the session and the user of a valid request.
func (g *Gate) UnaryRequest(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := g.checkRequest(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// StreamRequest is UnaryRequest for each message of a stream.
func (g *Gate) StreamRequest(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, gated{ss, g, info.FullMethod})
}

type gated struct {
	grpc.ServerStream
	g      *Gate
	method string
}

// RecvMsg implements grpc.ServerStream.
func (s gated) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.g.checkRequest(s.Context(), s.method, m)
}

// exempt reports whether an RPC is not Fairlead's own: health checks and reflection need no role.
func exempt(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.")
}

func checkCaller(ctx context.Context, method string) error {
	if exempt(method) {
		return nil
	}
	rule, err := Of(method)
	if err != nil {
		return err
	}
	if rule.Open {
		return nil
	}
	p, ok := principal.From(ctx)
	if !ok {
		return errors.New("access: the context has no principal")
	}
	return rule.Permit(p)
}

// Permit returns PERMISSION_DENIED if p has not the role or the scope of the rule.
func (r Rule) Permit(p principal.Principal) error {
	if p.Role < r.Role {
		return apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonRoleRequired,
			fmt.Sprintf("This call needs the role %s, and the caller has the role %s. Ask an administrator of the tenant for it.", r.Role, p.Role),
			apierr.Metadata(map[string]string{"role": r.Role.String()}))
	}
	if r.Scope != "" && !p.Allows(r.Scope) {
		return apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonScopeRequired,
			fmt.Sprintf("This call needs the scope %s, and the caller's key or token is limited to others. Use one with this scope.", r.Scope),
			apierr.Metadata(map[string]string{"scope": r.Scope}))
	}
	return nil
}

func (g *Gate) checkRequest(ctx context.Context, method string, req any) error {
	if exempt(method) {
		return nil
	}
	rule, err := Of(method)
	if err != nil {
		return err
	}
	if rule.Open {
		return nil // the handler checks the request's secret
	}
	m, ok := req.(proto.Message)
	p, _ := principal.From(ctx)
	if !ok || p.Role >= principal.RoleOperator {
		return nil // an operator sees all of the tenant, and the handlers stay within it
	}
	if user := rule.User.Of(m.ProtoReflect()); user != "" && !isUser(user, p.User) {
		return apierr.New(codes.PermissionDenied, apierr.Domain, apierr.ReasonOtherUser,
			fmt.Sprintf("Only users/%s itself, or an operator, may do this with %s.", p.User, user),
			apierr.Field(name(rule.User), "another user's"))
	}
	if resource := rule.Session.Of(m.ProtoReflect()); resource != "" {
		return g.checkSession(ctx, p, resource, method)
	}
	return nil
}

// isUser reports whether a resource is a user, or belongs to it.
func isUser(resource, user string) bool {
	for _, own := range []string{"users/me", "users/" + user} {
		if rest, ok := strings.CutPrefix(resource, own); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// sessionOf returns `sessions/{session}` of a resource in it.
func sessionOf(resource string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(resource, "sessions/"), "/")
	return "sessions/" + id
}

func name(p Path) string {
	parts := make([]string, len(p))
	for i, f := range p {
		parts[i] = string(f.Name())
	}
	return strings.Join(parts, ".")
}

func (g *Gate) checkSession(ctx context.Context, p principal.Principal, resource, method string) error {
	if g.owners == nil {
		return errors.New("access: this server does not know the owners of sessions")
	}
	session := sessionOf(resource)
	owner, err := g.owners.of(ctx, p.Tenant, session)
	switch {
	case err != nil:
		return err
	case owner == "" && resource == session && strings.Contains(method, "/Delete"):
		return nil // the repetition of a deletion gets its first answer from the handler, and others the same error
	case owner == "" || !p.Sees(owner):
		return g.owners.SessionNotFound(session)
	}
	return nil
}
