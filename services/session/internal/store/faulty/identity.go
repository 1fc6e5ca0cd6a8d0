package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of tenants, users and keys.
const (
	CreateTenant Method = "CreateTenant"
	GetTenant    Method = "GetTenant"
	ListTenants  Method = "ListTenants"
	CreateUser   Method = "CreateUser"
	GetUser      Method = "GetUser"
	ListUsers    Method = "ListUsers"
	UpdateUser   Method = "UpdateUser"
	DisableUser  Method = "DisableUser"
	CreateKey    Method = "CreateKey"
	GetKey       Method = "GetKey"
	ListKeys     Method = "ListKeys"
	RevokeKey    Method = "RevokeKey"
	RevokedKeys  Method = "RevokedKeys"
	ResolveKey   Method = "ResolveKey"
	HasKeys      Method = "HasKeys"
	KeysUsed     Method = "KeysUsed"
)

// CreateTenant implements store.Identities.
func (s identities) CreateTenant(ctx context.Context, n store.NewTenant) (store.Answer, error) {
	return do(ctx, s.injector, CreateTenant, func() (store.Answer, error) { return s.inner.CreateTenant(ctx, n) })
}

// GetTenant implements store.Identities.
func (s identities) GetTenant(ctx context.Context, tenant string) (*sessionv1.Tenant, error) {
	return do(ctx, s.injector, GetTenant, func() (*sessionv1.Tenant, error) { return s.inner.GetTenant(ctx, tenant) })
}

// ListTenants implements store.Identities.
func (s identities) ListTenants(ctx context.Context, after string, limit int) ([]*sessionv1.Tenant, error) {
	return do(ctx, s.injector, ListTenants, func() ([]*sessionv1.Tenant, error) { return s.inner.ListTenants(ctx, after, limit) })
}

// CreateUser implements store.Identities.
func (s identities) CreateUser(ctx context.Context, n store.NewUser) (store.Answer, error) {
	return do(ctx, s.injector, CreateUser, func() (store.Answer, error) { return s.inner.CreateUser(ctx, n) })
}

// GetUser implements store.Identities.
func (s identities) GetUser(ctx context.Context, o store.Owner) (*sessionv1.User, error) {
	return do(ctx, s.injector, GetUser, func() (*sessionv1.User, error) { return s.inner.GetUser(ctx, o) })
}

// ListUsers implements store.Identities.
func (s identities) ListUsers(ctx context.Context, tenant, after string, limit int) ([]*sessionv1.User, error) {
	return do(ctx, s.injector, ListUsers, func() ([]*sessionv1.User, error) { return s.inner.ListUsers(ctx, tenant, after, limit) })
}

// UpdateUser implements store.Identities.
func (s identities) UpdateUser(ctx context.Context, u store.UserUpdate) (store.Answer, error) {
	return do(ctx, s.injector, UpdateUser, func() (store.Answer, error) { return s.inner.UpdateUser(ctx, u) })
}

// DisableUser implements store.Identities.
func (s identities) DisableUser(ctx context.Context, o store.Owner, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DisableUser, func() (store.Answer, error) { return s.inner.DisableUser(ctx, o, r) })
}

// CreateKey implements store.Identities.
func (s identities) CreateKey(ctx context.Context, n store.NewKey) (store.Answer, error) {
	return do(ctx, s.injector, CreateKey, func() (store.Answer, error) { return s.inner.CreateKey(ctx, n) })
}

// GetKey implements store.Identities.
func (s identities) GetKey(ctx context.Context, tenant, id string) (*sessionv1.Key, error) {
	return do(ctx, s.injector, GetKey, func() (*sessionv1.Key, error) { return s.inner.GetKey(ctx, tenant, id) })
}

// ListKeys implements store.Identities.
func (s identities) ListKeys(ctx context.Context, p store.KeyPage) ([]*sessionv1.Key, error) {
	return do(ctx, s.injector, ListKeys, func() ([]*sessionv1.Key, error) { return s.inner.ListKeys(ctx, p) })
}

// RevokeKey implements store.Identities.
func (s identities) RevokeKey(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, RevokeKey, func() (store.Answer, error) { return s.inner.RevokeKey(ctx, tenant, id, r) })
}

// RevokedKeys implements store.Identities.
func (s identities) RevokedKeys(ctx context.Context, r store.Revocation) ([]string, error) {
	return do(ctx, s.injector, RevokedKeys, func() ([]string, error) { return s.inner.RevokedKeys(ctx, r) })
}

// ResolveKey implements store.Identities.
func (s identities) ResolveKey(ctx context.Context, hash []byte) (store.Resolved, error) {
	return do(ctx, s.injector, ResolveKey, func() (store.Resolved, error) { return s.inner.ResolveKey(ctx, hash) })
}

// HasKeys implements store.Identities.
func (s identities) HasKeys(ctx context.Context, tenant string) (bool, error) {
	return do(ctx, s.injector, HasKeys, func() (bool, error) { return s.inner.HasKeys(ctx, tenant) })
}

// KeysUsed implements store.Identities.
func (s identities) KeysUsed(ctx context.Context, uses []store.KeyUse) error {
	return just(ctx, s.injector, KeysUsed, func() error { return s.inner.KeysUsed(ctx, uses) })
}
