package tenancy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// userError is storeError for a request about one user.
func userError(err error, name, requestID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_USER_NOT_FOUND,
			fmt.Sprintf("There is no user %s, or it was deleted. An operator can list the users (GET /v1/users).", name),
			apierr.Resource("fairlead.dev/User", name, "not found"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

// GetCurrentUser describes the caller.
func (*IdentityServer) GetCurrentUser(ctx context.Context, _ *sessionv1.GetCurrentUserRequest) (*sessionv1.GetCurrentUserResponse, error) {
	p := request.Caller(ctx)
	return &sessionv1.GetCurrentUserResponse{
		Tenant: "tenants/" + p.Tenant, User: "users/" + p.User, Role: commonv1.Role(p.Role), Scopes: p.Scopes, Credential: p.Credential,
	}, nil
}

// CreateUser makes a user.
func (x *IdentityServer) CreateUser(ctx context.Context, r *sessionv1.CreateUserRequest) (*sessionv1.CreateUserResponse, error) {
	n := store.NewUser{
		Owner: store.Owner{Tenant: request.Caller(ctx).Tenant, User: r.UserId}, Title: r.GetUser().GetTitle(), Role: r.GetUser().GetRole(),
		Request: request.Lasting("CreateUser", "", r),
	}
	if n.Role == commonv1.Role_ROLE_UNSPECIFIED {
		n.Role = commonv1.Role_ROLE_USER
	}
	_, err := x.Store.CreateUser(ctx, n)
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, identityExists("User", "users/"+r.UserId, "user_id")
	case errors.Is(err, store.ErrNotFound):
		return nil, tenantNotFound("tenants/" + n.Tenant)
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	u, err := x.Store.GetUser(ctx, n.Owner)
	if err != nil {
		return nil, userError(err, "users/"+r.UserId, "")
	}
	return &sessionv1.CreateUserResponse{User: u}, nil
}

// GetUser reads a user.
func (x *IdentityServer) GetUser(ctx context.Context, r *sessionv1.GetUserRequest) (*sessionv1.GetUserResponse, error) {
	u, err := x.Store.GetUser(ctx, request.UserOf(ctx, r.Name))
	if err != nil {
		return nil, userError(err, r.Name, "")
	}
	return &sessionv1.GetUserResponse{User: u}, nil
}

// ListUsers lists a page of users.
func (x *IdentityServer) ListUsers(ctx context.Context, r *sessionv1.ListUsersRequest) (*sessionv1.ListUsersResponse, error) {
	tenant := request.Caller(ctx).Tenant
	all, next, err := request.List("ListUsers\x00"+tenant, r, refusal.Subject{}, request.ByID, func(after string, n int) ([]*sessionv1.User, error) {
		return x.Store.ListUsers(ctx, tenant, after, n)
	})
	return &sessionv1.ListUsersResponse{Users: all, NextPageToken: next}, err
}

// UpdateUser changes a user. The caller's own role stays: the last admin cannot leave.
func (x *IdentityServer) UpdateUser(ctx context.Context, r *sessionv1.UpdateUserRequest) (*sessionv1.UpdateUserResponse, error) {
	u := store.UserUpdate{
		Owner: request.UserOf(ctx, r.Name), Title: r.Title, Role: r.Role, Request: request.Lasting("UpdateUser", r.Name, r),
	}
	if u.Role != nil && u.User == request.Caller(ctx).User {
		return nil, ownUser(u.User, "change their own role")
	}
	if _, err := x.Store.UpdateUser(ctx, u); err != nil {
		return nil, userError(err, r.Name, r.RequestId)
	}
	changed, err := x.Store.GetUser(ctx, u.Owner)
	if err != nil {
		return nil, userError(err, r.Name, "")
	}
	return &sessionv1.UpdateUserResponse{User: changed}, nil
}

func ownUser(user, what string) error {
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_OWN_USER,
		fmt.Sprintf("Callers cannot %s, so that a tenant keeps an admin. Ask another admin to do it.", what),
		apierr.Precondition("OWN_USER", "users/"+user, "is the caller"))
}

// checkOwnKey refuses the deletion of a user with whom the key of the call ends, so that a tenant keeps an admin.
func (x *IdentityServer) checkOwnKey(ctx context.Context, user string) error {
	p := request.Caller(ctx)
	for id, ok := strings.CutPrefix(p.Credential, "keys/"); ok; {
		k, err := x.Store.GetKey(ctx, p.Tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return refusal.Store(err, refusal.Subject{})
		}
		if k.User == "users/"+user || k.Parent == "" && k.Creator == "users/"+user {
			return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_OWN_USER,
				fmt.Sprintf("The key of this call was made with a key of users/%s, and would end with the user. Repeat the call with a credential that does not: "+
					"a token, or a key that an admin makes who has none of this user.", user),
				apierr.Precondition("OWN_KEY", p.Credential, "would end with the user"))
		}
		id, ok = strings.CutPrefix(k.Parent, "keys/")
	}
	return nil
}

// DeleteUser disables a user.
func (x *IdentityServer) DeleteUser(ctx context.Context, r *sessionv1.DeleteUserRequest) (*sessionv1.DeleteUserResponse, error) {
	o := request.UserOf(ctx, r.Name)
	if o.User == request.Caller(ctx).User {
		return nil, ownUser(o.User, "delete themselves")
	}
	if err := x.checkOwnKey(ctx, o.User); err != nil {
		return nil, err
	}
	if _, err := x.Store.DisableUser(ctx, o, request.Lasting("DeleteUser", r.Name, r)); err != nil {
		return nil, userError(err, r.Name, r.RequestId)
	}
	// The caller repeats the request if this fails: it may put the job twice.
	if err := x.Store.PutJobs(ctx, []store.Job{jobs.GrantsJob(o.Tenant, o.User)}); err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	u, err := x.Store.GetUser(ctx, o)
	if err != nil {
		return nil, userError(err, r.Name, "")
	}
	revoked, err := x.revokedKeys(ctx, store.Revocation{Owner: o, Since: u.UpdateTime.AsTime()})
	return &sessionv1.DeleteUserResponse{RevokedKeys: revoked}, err
}
