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
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// IdentityServer implements IdentityService.
type IdentityServer struct {
	sessionv1.UnimplementedIdentityServiceServer
	*Config
}

// firstAdmin is the id of a tenant's first admin if the request names none.
const firstAdmin = "admin"

// CreateTenant makes a tenant.
func (x *IdentityServer) CreateTenant(ctx context.Context, r *sessionv1.CreateTenantRequest) (*sessionv1.CreateTenantResponse, error) {
	p := request.Caller(ctx)
	if err := mustManageTenants(p); err != nil {
		return nil, err
	}
	if _, err := x.first(ctx, r.FirstKey); err != nil {
		return nil, err
	}
	secret := apikey.New()
	n := store.NewTenant{
		ID: r.TenantId, Title: r.GetTenant().GetTitle(), Admin: r.AdminId, By: p.Tenant,
		Key:     store.NewKey{ID: id.New(), Title: "first key", Hash: secret.Hash(), Role: commonv1.Role_ROLE_ADMIN, Expire: x.latestEnd(p)},
		Request: request.Lasting("CreateTenant", "", r),
	}
	if n.Admin == "" {
		n.Admin = firstAdmin
	}
	n.Key.Creator = n.Admin
	answer, err := x.Store.CreateTenant(ctx, n)
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, identityExists("Tenant", "tenants/"+r.TenantId, "tenant_id")
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	out := &sessionv1.CreateTenantResponse{}
	if !answer.Replayed {
		out.Secret = secret.String()
	}
	if out.Tenant, err = x.Store.GetTenant(ctx, n.ID); err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	if out.Admin, err = x.Store.GetUser(ctx, store.Owner{Tenant: n.ID, User: n.Admin}); err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	if out.Key, err = x.Store.GetKey(ctx, n.ID, answer.Value); err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	return out, nil
}

// mustManageTenants refuses callers that do not manage tenants.
func mustManageTenants(p principal.Principal) error {
	if p.Tenant == store.SystemTenant {
		return nil
	}
	return refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_NOT_SYSTEM_TENANT,
		fmt.Sprintf("Only an admin of the tenant %s manages tenants. Ask the operator of this server.", store.SystemTenant))
}

func identityExists(kind, name, field string) error {
	return refusal.Of(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
		fmt.Sprintf("There is already a %s %s. Choose another %s.", strings.ToLower(kind), name, field),
		apierr.Resource("fairlead.dev/"+kind, name, "exists already"))
}

// GetTenant reads a tenant.
func (x *IdentityServer) GetTenant(ctx context.Context, r *sessionv1.GetTenantRequest) (*sessionv1.GetTenantResponse, error) {
	p := request.Caller(ctx)
	tenant := strings.TrimPrefix(r.Name, "tenants/")
	if tenant != p.Tenant && mustManageTenants(p) != nil {
		return nil, tenantNotFound(r.Name)
	}
	t, err := x.Store.GetTenant(ctx, tenant)
	if errors.Is(err, store.ErrNotFound) {
		return nil, tenantNotFound(r.Name)
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	return &sessionv1.GetTenantResponse{Tenant: t}, nil
}

func tenantNotFound(name string) error {
	return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TENANT_NOT_FOUND,
		fmt.Sprintf("There is no tenant %s. An admin of the tenant %s can list the tenants (GET /v1/tenants).", name, store.SystemTenant),
		apierr.Resource("fairlead.dev/Tenant", name, "not found"))
}

// ListTenants lists a page of tenants.
func (x *IdentityServer) ListTenants(ctx context.Context, r *sessionv1.ListTenantsRequest) (*sessionv1.ListTenantsResponse, error) {
	if err := mustManageTenants(request.Caller(ctx)); err != nil {
		return nil, err
	}
	all, next, err := request.List("ListTenants", r, refusal.Subject{}, request.ByID, func(after string, n int) ([]*sessionv1.Tenant, error) {
		return x.Store.ListTenants(ctx, after, n)
	})
	return &sessionv1.ListTenantsResponse{Tenants: all, NextPageToken: next}, err
}
