package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/server/tenancy"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Register registers the services for clients.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	s.automation.Register(r)
	s.catalog.Register(r)
	s.conversation.Register(r)
	s.files.Register(r)
	s.peer.Register(r)
	s.tenancy.Register(r)
}

// RegisterPeer registers the services for operators, and for services that authenticate callers.
func (s *Server) RegisterPeer(r grpc.ServiceRegistrar, keys *apikey.Resolver) {
	s.peer.RegisterPeer(r)
	sessionv1.RegisterKeyServiceServer(r, tenancy.KeyService(keys, s.store))
}

// SessionOwner returns the user to whom a session belongs, or "" if there is no such session.
func (s *Server) SessionOwner(ctx context.Context, session string) (string, error) {
	owner, err := s.store.SessionOwner(ctx, request.Key(ctx, session))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return owner, refusal.Store(err, refusal.Subject{Session: session})
}

// SessionNotFound returns the error for a session that does not exist, or that the caller may not see.
func (*Server) SessionNotFound(session string) error { return refusal.SessionNotFound(session) }

// auditWait is how long a change waits until its entry is written.
const auditWait = 5 * time.Second

// Audit records a call. A change that must be recorded before its answer, and is not in time, answers
// UNAVAILABLE; repeated with its request id it changes nothing more and is recorded.
func (*Server) Audit(ctx context.Context, c rpc.AuditedCall, to *audit.Recorder) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWait)
	defer cancel()
	err := to.Call(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		return refusal.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE,
			"The change is made, and the audit log cannot be written. Repeat the request with the same request id: nothing is done twice.", apierr.RetryAfter(time.Second))
	}
	return err
}
