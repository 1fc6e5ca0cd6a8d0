package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Errors of an Admin.
var (
	// ErrInitialized says that a key exists already.
	ErrInitialized = errors.New("there is a key already")
	// ErrNoUser says that the tenant or the user does not exist, or the user was deleted.
	ErrNoUser = errors.New("there is no such user")
)

// Admin changes who may call, in the database itself. It needs no credential: its user
// can read the database. With SQLite no server may run.
type Admin struct{ store store.Store }

// OpenAdmin opens the database of a configuration.
func OpenAdmin(ctx context.Context, c Config, log *slog.Logger) (*Admin, error) {
	st, err := openStore(ctx, c, log)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &Admin{st}, nil
}

// Init makes the first key: it belongs to an admin of a tenant, which it makes, too, if
// they do not exist. It returns the key's secret, or ErrInitialized.
func (a *Admin) Init(ctx context.Context, tenant, user string) (string, error) {
	has, err := a.store.HasKeys(ctx)
	if err != nil {
		return "", err
	}
	if has {
		return "", ErrInitialized
	}
	if _, err := a.store.GetTenant(ctx, tenant); errors.Is(err, store.ErrNotFound) {
		return a.initTenant(ctx, tenant, user)
	} else if err != nil {
		return "", err
	}
	_, err = a.store.CreateUser(ctx, store.NewUser{Owner: store.Owner{Tenant: tenant, User: user}, Role: commonv1.Role_ROLE_ADMIN})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return "", err
	}
	return a.NewKey(ctx, tenant, user)
}

func (a *Admin) initTenant(ctx context.Context, tenant, user string) (string, error) {
	secret := apikey.New()
	_, err := a.store.CreateTenant(ctx, store.NewTenant{ID: tenant, Admin: user, By: tenant, Key: newKey(store.Owner{Tenant: tenant, User: user}, secret)})
	return secret.String(), err
}

func newKey(o store.Owner, secret apikey.Secret) store.NewKey {
	return store.NewKey{
		Owner: o, ID: id.New(), Title: "fairlead admin", Hash: secret.Hash(), Role: commonv1.Role_ROLE_ADMIN, Most: commonv1.Role_ROLE_ADMIN, Creator: o.User,
	}
}

// NewKey makes a key of an admin, for a tenant whose admins have lost theirs. A user that
// is not an admin becomes one. It returns the key's secret, or ErrNoUser.
func (a *Admin) NewKey(ctx context.Context, tenant, user string) (string, error) {
	o, role := store.Owner{Tenant: tenant, User: user}, commonv1.Role_ROLE_ADMIN
	secret := apikey.New()
	_, err := a.store.UpdateUser(ctx, store.UserUpdate{Owner: o, Role: &role})
	if err == nil {
		_, err = a.store.CreateKey(ctx, newKey(o, secret))
	}
	if errors.Is(err, store.ErrNotFound) {
		return "", ErrNoUser
	}
	return secret.String(), err
}

// Close closes the database.
func (a *Admin) Close() error { return a.store.Close() }
