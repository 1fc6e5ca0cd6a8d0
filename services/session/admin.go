package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	kitaudit "github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Errors of an Admin.
var (
	// ErrInitialized says that a key exists already.
	ErrInitialized = errors.New("there is a key already")
	// ErrNoUser says that the tenant or the user does not exist, or the user was deleted.
	ErrNoUser = errors.New("there is no such user")
)

// adminCommand is the command that uses an Admin: the title of its keys, and in the audit log its credential.
const adminCommand = "fairlead admin"

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
	o := store.Owner{Tenant: tenant, User: user}
	_, err = a.store.CreateUser(ctx, store.NewUser{Owner: o, Role: commonv1.Role_ROLE_ADMIN})
	if errors.Is(err, store.ErrExists) {
		return a.NewKey(ctx, tenant, user)
	}
	if err != nil {
		return "", err
	}
	return a.createKey(ctx, o, change{sessionv1.IdentityService_CreateUser_FullMethodName, "users/" + user})
}

func (a *Admin) initTenant(ctx context.Context, tenant, user string) (string, error) {
	o, secret := store.Owner{Tenant: tenant, User: user}, apikey.New()
	key := newKey(o, secret)
	if _, err := a.store.CreateTenant(ctx, store.NewTenant{ID: tenant, Admin: user, By: tenant, Key: key}); err != nil {
		return "", err
	}
	if err := a.record(ctx, o, change{sessionv1.IdentityService_CreateTenant_FullMethodName, "tenants/" + tenant}, keyMade(key)); err != nil {
		return "", err
	}
	return secret.String(), nil
}

func newKey(o store.Owner, secret apikey.Secret) store.NewKey {
	return store.NewKey{
		Owner: o, ID: id.New(), Title: adminCommand, Hash: secret.Hash(), Role: commonv1.Role_ROLE_ADMIN, Most: commonv1.Role_ROLE_ADMIN, Creator: o.User,
	}
}

// NewKey makes a key of an admin, for a tenant whose admins have lost theirs. A user that
// is not an admin becomes one. It returns the key's secret, or ErrNoUser.
func (a *Admin) NewKey(ctx context.Context, tenant, user string) (string, error) {
	o, role := store.Owner{Tenant: tenant, User: user}, commonv1.Role_ROLE_ADMIN
	_, err := a.store.UpdateUser(ctx, store.UserUpdate{Owner: o, Role: &role})
	if errors.Is(err, store.ErrNotFound) {
		return "", ErrNoUser
	}
	if err != nil {
		return "", err
	}
	return a.createKey(ctx, o, change{sessionv1.IdentityService_UpdateUser_FullMethodName, "users/" + user})
}

// createKey makes a key. It returns the secret only when the audit log has the key and the change before it.
func (a *Admin) createKey(ctx context.Context, o store.Owner, before change) (string, error) {
	secret := apikey.New()
	key := newKey(o, secret)
	_, err := a.store.CreateKey(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return "", ErrNoUser
	}
	if err == nil {
		err = a.record(ctx, o, before, keyMade(key))
	}
	if err != nil {
		return "", err
	}
	return secret.String(), nil
}

// change is a change of an Admin, as the RPC that does the same, and what it is about.
type change struct{ method, resource string }

func keyMade(k store.NewKey) change {
	return change{sessionv1.IdentityService_CreateKey_FullMethodName, "keys/" + k.ID}
}

// record writes changes to the tenant's audit log.
func (a *Admin) record(ctx context.Context, o store.Owner, changes ...change) error {
	entries := make([]kitaudit.Entry, 0, len(changes))
	for _, c := range changes {
		entries = append(entries, kitaudit.Entry{
			Time: time.Now(), User: o.User, Credential: adminCommand, Client: "local",
			Method: audit.Method(c.method), Resource: c.resource, Code: "OK",
		})
	}
	if err := a.store.AppendAudit(ctx, o.Tenant, entries); err != nil {
		return fmt.Errorf("session: there is a key that the audit log does not have, and its secret is lost; make another with fairlead admin key: %w", err)
	}
	return nil
}

// Close closes the database.
func (a *Admin) Close() error { return a.store.Close() }
