package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CreateKey makes a key.
func (x *IdentityServer) CreateKey(ctx context.Context, r *sessionv1.CreateKeyRequest) (*sessionv1.CreateKeyResponse, error) {
	p := request.Caller(ctx)
	secret := apikey.New()
	n := store.NewKey{
		Owner: request.UserOf(ctx, "users/me"), ID: id.New(), Title: r.GetKey().GetTitle(), Hash: secret.Hash(), Creator: p.User,
		Role: r.GetKey().GetRole(), Most: commonv1.Role(p.Role), Scopes: r.GetKey().GetScopes(),
		Request: request.Lasting("CreateKey", request.OwnScope(ctx), r),
	}
	if own, ok := strings.CutPrefix(p.Credential, "keys/"); ok {
		n.Parent = own
	}
	if r.GetKey().GetUser() != "" {
		n.Owner = request.UserOf(ctx, r.Key.User)
	}
	if r.GetKey().GetExpireTime() != nil {
		if n.Expire = r.Key.ExpireTime.AsTime(); !n.Expire.After(time.Now()) {
			return nil, badKey("expire_time", "must be in the future")
		}
	}
	if err := checkKey(p, n); err != nil {
		return nil, err
	}
	if err := x.checkQueues(ctx, p.Tenant, n.Scopes); err != nil {
		return nil, err
	}
	if n.Expire.IsZero() {
		n.Expire = x.latestEnd(p)
	}
	if err := x.checkEnd(p, n); err != nil {
		return nil, err
	}
	if err := x.checkFirst(ctx, r.FirstKey, n); err != nil {
		return nil, err
	}
	answer, err := x.Store.CreateKey(ctx, n)
	if err != nil {
		return nil, createKeyError(err, n)
	}
	k, err := x.Store.GetKey(ctx, n.Tenant, answer.Value)
	if err != nil {
		return nil, keyError(err, "keys/"+answer.Value, "")
	}
	if answer.Replayed {
		return &sessionv1.CreateKeyResponse{Key: k}, nil
	}
	return &sessionv1.CreateKeyResponse{Key: k, Secret: secret.String()}, nil
}

func badKey(field, fault string) error {
	field = "key." + field
	return apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, "the request is invalid: "+field+": "+fault, apierr.Field(field, fault))
}

// checkKey refuses a key that can do more than its creator.
func checkKey(p principal.Principal, n store.NewKey) error {
	if n.User != p.User && p.Role < principal.RoleAdmin {
		return refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER,
			"Only an admin makes keys of other users. Leave the user out to make one of your own.", apierr.Field("key.user", "another user's"))
	}
	if n.Role > n.Most {
		return beyondRole(fmt.Sprintf("The caller has the role %s, and its keys cannot have a higher one.", p.Role), "key.role")
	}
	if len(p.Scopes) > 0 && len(n.Scopes) == 0 {
		return beyondRole("The caller is limited to scopes, and so are its keys: name the new key's scopes.", "key.scopes")
	}
	for _, s := range n.Scopes {
		if _, queue := apikey.QueueOf(s); !queue && !slices.Contains(apikey.Scopes(), s) {
			return badKey("scopes", fmt.Sprintf("%s is not a scope; the scopes are %s, and %sENVIRONMENT for a worker of that environment",
				s, strings.Join(apikey.Scopes(), ", "), apikey.QueueScope("")))
		}
		if !p.Allows(s) {
			return beyondRole(fmt.Sprintf("The caller does not have the scope %s, so its keys cannot have it.", s), "key.scopes")
		}
	}
	return nil
}

// checkQueues refuses a key of a worker for an environment that does not exist.
func (x *IdentityServer) checkQueues(ctx context.Context, tenant string, scopes []string) error {
	for _, s := range scopes {
		environment, queue := apikey.QueueOf(s)
		if !queue {
			continue
		}
		_, err := x.Store.GetAgent(ctx, tenant, "environments/"+environment, 0)
		if errors.Is(err, store.ErrNotFound) {
			return badKey("scopes", fmt.Sprintf("%s names an environment that does not exist", s))
		}
		if err != nil {
			return refusal.Store(err, refusal.Subject{})
		}
	}
	return nil
}

// latestEnd returns the latest end of a key that p makes: when the credential of p ends, and after a token as much
// later as the operator allows. Zero: the key needs no end.
func (x *IdentityServer) latestEnd(p principal.Principal) time.Time {
	if p.Expire.IsZero() || strings.HasPrefix(p.Credential, "keys/") {
		return p.Expire
	}
	return p.Expire.Add(x.KeysOutliveToken)
}

// checkEnd refuses a key that works longer than the credential that makes it may.
func (x *IdentityServer) checkEnd(p principal.Principal, n store.NewKey) error {
	latest := x.latestEnd(p)
	if latest.IsZero() || !n.Expire.After(latest) {
		return nil
	}
	return beyondRole(fmt.Sprintf("The caller's credential ends at %s, and the keys that it makes end at %s at the latest. "+
		"Set an earlier end, or none, or make the key with a credential that lasts. The operator can allow more after tokens with the setting keys-outlive-token of session.",
		p.Expire.UTC().Format(time.RFC3339), latest.UTC().Format(time.RFC3339)), "key.expire_time")
}

func beyondRole(message, field string) error {
	return refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE, message, apierr.Field(field, "more than the caller may do"))
}

// first reports whether a caller without a credential makes the first key of the server, which ends such calls.
// Without wanted it refuses the key: the caller may not know.
func (x *IdentityServer) first(ctx context.Context, wanted bool) (bool, error) {
	if request.Caller(ctx).Credential != "" {
		return false, nil
	}
	has, err := x.Store.HasKeys(ctx, "")
	switch {
	case err != nil:
		return false, refusal.Store(err, refusal.Subject{})
	case !has && !wanted:
		return false, refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY,
			"This server is open: it has no key yet, and the first one closes it to every call without a credential. "+
				"Make that one first, for an admin: run `fairlead admin init`, then `fairlead login`, and repeat this call.",
			apierr.Precondition("FIRST_KEY", "keys", "would close the server"))
	}
	return !has, nil
}

// checkFirst refuses a first key that would lock the admins out.
func (x *IdentityServer) checkFirst(ctx context.Context, wanted bool, n store.NewKey) error {
	first, err := x.first(ctx, wanted)
	if err != nil {
		return err
	}
	if !first || n.Role == commonv1.Role_ROLE_ADMIN && len(n.Scopes) == 0 && n.Expire.IsZero() {
		return nil
	}
	if n.Role == commonv1.Role_ROLE_UNSPECIFIED && n.Most >= commonv1.Role_ROLE_ADMIN && len(n.Scopes) == 0 && n.Expire.IsZero() {
		u, err := x.Store.GetUser(ctx, n.Owner)
		if err != nil {
			return createKeyError(err, n)
		}
		if u.Role == commonv1.Role_ROLE_ADMIN {
			return nil
		}
	}
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY,
		"The first key closes the server to calls without a credential, so it must be an admin's, without scopes and without an end. Run `fairlead admin init` to make that one.",
		apierr.Precondition("FIRST_KEY", "keys", "would lock the admins out"))
}

func createKeyError(err error, n store.NewKey) error {
	name := "users/" + n.User
	switch {
	case errors.Is(err, store.ErrNotFound):
		return userError(err, name, "")
	case errors.Is(err, store.ErrRole):
		return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
			fmt.Sprintf("The key's role is higher than the role of %s. Give the user that role first, or the key a lower one.", name),
			apierr.Precondition("ROLE", name, "has a lower role"), apierr.Field("key.role", "higher than the user's"))
	case errors.Is(err, store.ErrParent):
		return refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_PARENT_REVOKED,
			"The key of this call was revoked meanwhile, so it makes no key. Use another credential.")
	case errors.Is(err, store.ErrTooMany):
		return refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("There are already %d keys of %s, the most allowed. Revoke one first.", store.MaxKeys, name), apierr.Quota(name, "keys"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: n.Request.ID})
}

func keyError(err error, name, requestID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_KEY_NOT_FOUND,
			fmt.Sprintf("There is no key %s. List the keys (GET /v1/keys) to see which there are.", name),
			apierr.Resource("fairlead.dev/Key", name, "not found"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

// seen reads a key that the caller may see: its own, or any of the tenant for an admin.
func (x *IdentityServer) seen(ctx context.Context, name string) (*sessionv1.Key, error) {
	p := request.Caller(ctx)
	k, err := x.Store.GetKey(ctx, p.Tenant, strings.TrimPrefix(name, "keys/"))
	if err == nil && p.Role < principal.RoleAdmin && k.User != "users/"+p.User {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, keyError(err, name, "")
	}
	return k, nil
}

// GetKey reads a key.
func (x *IdentityServer) GetKey(ctx context.Context, r *sessionv1.GetKeyRequest) (*sessionv1.GetKeyResponse, error) {
	k, err := x.seen(ctx, r.Name)
	if err == nil && k.RevokeTime != nil {
		err = x.addRevoked(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	return &sessionv1.GetKeyResponse{Key: k}, nil
}

// maxRevoked is how many keys an answer about a revocation names.
const maxRevoked = 1000

// revokedKeys lists the keys that a revocation has ended.
func (x *IdentityServer) revokedKeys(ctx context.Context, r store.Revocation) ([]string, error) {
	r.Limit = maxRevoked
	ids, err := x.Store.RevokedKeys(ctx, r)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	for i, id := range ids {
		ids[i] = "keys/" + id
	}
	return ids, nil
}

// addRevoked adds to a revoked key which keys ended with it.
func (x *IdentityServer) addRevoked(ctx context.Context, k *sessionv1.Key) (err error) {
	k.RevokedKeys, err = x.revokedKeys(ctx, store.Revocation{
		Owner: request.UserOf(ctx, k.User), Key: request.LastSegment(k.Name), Since: k.RevokeTime.AsTime(),
	})
	return err
}

// ListKeys lists a page of keys.
func (x *IdentityServer) ListKeys(ctx context.Context, r *sessionv1.ListKeysRequest) (*sessionv1.ListKeysResponse, error) {
	p := request.Caller(ctx)
	q := store.KeyPage{Tenant: p.Tenant}
	if r.User != "" {
		q.User = request.UserOf(ctx, r.User).User
	}
	if p.Role < principal.RoleAdmin {
		if q.User != "" && q.User != p.User {
			return &sessionv1.ListKeysResponse{}, nil
		}
		q.User = p.User
	}
	scope := "ListKeys\x00" + q.Tenant + "\x00" + q.User
	all, next, err := request.List(scope, r, refusal.Subject{}, keyCursorAt, func(after request.Cursor, n int) ([]*sessionv1.Key, error) {
		q.AfterTime, q.AfterID, q.Limit = after.Time, after.ID, n
		return x.Store.ListKeys(ctx, q)
	})
	return &sessionv1.ListKeysResponse{Keys: all, NextPageToken: next}, err
}

func keyCursorAt(k *sessionv1.Key) request.Cursor {
	return request.Cursor{Time: k.CreateTime.AsTime(), ID: request.LastSegment(k.Name)}
}

// RevokeKey ends a key.
func (x *IdentityServer) RevokeKey(ctx context.Context, r *sessionv1.RevokeKeyRequest) (*sessionv1.RevokeKeyResponse, error) {
	k, err := x.seen(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	tenant, key := request.Caller(ctx).Tenant, request.LastSegment(k.Name)
	if _, err := x.Store.RevokeKey(ctx, tenant, key, request.Lasting("RevokeKey", r.Name, r)); err != nil {
		return nil, keyError(err, r.Name, r.RequestId)
	}
	if k, err = x.Store.GetKey(ctx, tenant, key); err != nil {
		return nil, keyError(err, r.Name, "")
	}
	if err := x.addRevoked(ctx, k); err != nil {
		return nil, err
	}
	return &sessionv1.RevokeKeyResponse{Key: k}, nil
}
