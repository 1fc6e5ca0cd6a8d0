package tenancy

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// KeyServer implements KeyService.
type KeyServer struct {
	sessionv1.UnimplementedKeyServiceServer
	keys  *apikey.Resolver
	store store.RequestKeys
}

// KeyService returns the server of KeyService.
func KeyService(keys *apikey.Resolver, st store.RequestKeys) *KeyServer {
	return &KeyServer{keys: keys, store: st}
}

// claimed is how long a request counts as the one that a client repeats. Clients repeat within seconds. A longer time
// would take a message that is sent twice on purpose for a repetition more often.
const claimed = 2 * time.Minute

// ClaimRequestKey gives a request an idempotency key.
func (x *KeyServer) ClaimRequestKey(ctx context.Context, r *sessionv1.ClaimRequestKeyRequest) (*sessionv1.ClaimRequestKeyResponse, error) {
	key, err := x.store.ClaimRequestKey(ctx, store.Owner{Tenant: r.Tenant, User: r.User}, r.Digest, id.New(), r.Repeated, time.Now().Add(claimed))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	return &sessionv1.ClaimRequestKeyResponse{Key: key}, nil
}

// ResolveKey returns the principal of a key.
func (x *KeyServer) ResolveKey(ctx context.Context, r *sessionv1.ResolveKeyRequest) (*sessionv1.ResolveKeyResponse, error) {
	if len(r.Sha256) == 0 {
		if err := x.keys.Open(ctx); err != nil {
			return nil, resolveError(err)
		}
		p := principal.Default()
		return &sessionv1.ResolveKeyResponse{Tenant: p.Tenant, User: p.User, Role: commonv1.Role(p.Role)}, nil
	}
	k, err := x.keys.Resolve(ctx, r.Sha256)
	if err != nil {
		return nil, resolveError(err)
	}
	out := &sessionv1.ResolveKeyResponse{Tenant: k.Tenant, User: k.User, Role: k.Role, Scopes: k.Scopes, Credential: "keys/" + k.Key}
	if !k.Expire.IsZero() {
		out.ExpireTime = timestamppb.New(k.Expire)
	}
	return out, nil
}

// ResolveUser returns what a user may do at most.
func (x *KeyServer) ResolveUser(ctx context.Context, r *sessionv1.ResolveUserRequest) (*sessionv1.ResolveUserResponse, error) {
	role, err := x.keys.MostOf(ctx, store.Owner{Tenant: r.Tenant, User: r.User})
	if err != nil {
		return nil, resolveError(err)
	}
	return &sessionv1.ResolveUserResponse{Role: role}, nil
}

func resolveError(err error) error {
	switch {
	case errors.Is(err, apikey.ErrRefused):
		return refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED,
			"The key is not valid: it does not exist, was revoked, has ended, or its user was deleted. Ask an admin of the tenant for another one.")
	case errors.Is(err, apikey.ErrDeleted):
		return refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_USER_REFUSED, "The user was deleted. Ask an admin of the tenant to create the user again.")
	case errors.Is(err, apikey.ErrTenant):
		return refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TENANT_REFUSED,
			"The tenant of the token does not exist. Ask an admin of the tenant default to create it.")
	case errors.Is(err, apikey.ErrMissing):
		return refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_CREDENTIAL_MISSING,
			"The call has no credential, and the server needs one. Send `Authorization: Bearer` with a key or a token.")
	}
	return refusal.Store(err, refusal.Subject{})
}
