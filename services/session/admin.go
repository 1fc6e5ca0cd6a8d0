package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	kitaudit "github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Errors of an Admin.
var (
	// ErrInitialized says that the tenant has a key already.
	ErrInitialized = errors.New("there is a key already")
	// ErrNoUser says that the tenant or the user does not exist, or the user was deleted.
	ErrNoUser = errors.New("there is no such user")
)

// adminCommand is the command that uses an Admin: the title of its keys, and in the audit log its credential.
const adminCommand = "fairlead admin"

// AdminFlags name the user of an admin command.
type AdminFlags struct {
	Tenant string `key:"tenant" help:"the tenant of the admin"`
	User   string `key:"user" help:"the id of the admin; admin by default"`
}

// Run makes a key in the database of a configuration, as the command "init" or "key", and says what it did.
func (f AdminFlags) Run(ctx context.Context, command string, c Config, log *slog.Logger, out io.Writer) error {
	secret, err := f.Make(ctx, command, c, log)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, f.Text(secret, c))
	return err
}

// Make makes the key as Run does, and returns its secret. Its errors say what to do.
func (f AdminFlags) Make(ctx context.Context, command string, c Config, log *slog.Logger) (secret string, err error) {
	a, err := OpenAdmin(ctx, c, log)
	if err != nil {
		return "", err
	}
	if command == "init" {
		secret, err = a.Init(ctx, f.Tenant, f.User)
	} else {
		secret, err = a.NewKey(ctx, f.Tenant, f.User)
	}
	switch {
	case errors.Is(err, ErrInitialized):
		err = fmt.Errorf("%w, of the tenant %s in the database %s\nMake more keys with `fairlead keys create`, after `fairlead login`. "+
			"If no admin has a key any more, use `admin key` instead of `admin init`. If your server still needs no key, its database is another one: "+
			"repeat this with the --data, the --config or the FAIRLEAD_DATABASE_URL of that server", err, f.Tenant, c.Database())
	case errors.Is(err, ErrNoUser):
		err = fmt.Errorf("%w: %s of the tenant %s in the database %s\nName an existing one with --tenant and --user, or leave --user out", err, cmp.Or(f.User, FirstAdmin), f.Tenant, c.Database())
	}
	return secret, errors.Join(err, a.Close())
}

// Text says whose a new key is and which database has it.
func (f AdminFlags) Text(secret string, c Config) string {
	return fmt.Sprintf("The key of users/%s in the tenant %s, which is shown only now:\n\n  %s\n\n"+
		"It is in the database %s.\nEvery server on this database needs a key from now on. A server on another database is as before.\n",
		cmp.Or(f.User, FirstAdmin), f.Tenant, secret, c.Database())
}

// Database names the database of a configuration, without its password.
func (c Config) Database() string {
	raw := c.DatabaseURL.Reveal()
	if raw == "" {
		file := filepath.Join(c.Data, "session.db")
		if whole, err := filepath.Abs(file); err == nil {
			file = whole
		}
		return file
	}
	return pg.Name(raw)
}

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

// FirstAdmin is the id of an admin that has no other name.
const FirstAdmin = "admin"

// Init makes the first key of a tenant: it belongs to an admin of the tenant, which it makes, too, if
// they do not exist. It returns the key's secret, or ErrInitialized.
func (a *Admin) Init(ctx context.Context, tenant, user string) (string, error) {
	has, err := a.store.HasKeys(ctx, tenant)
	if err != nil {
		return "", err
	}
	if has {
		return "", ErrInitialized
	}
	user = cmp.Or(user, FirstAdmin)
	if _, err := a.store.GetTenant(ctx, tenant); errors.Is(err, store.ErrNotFound) {
		return a.initTenant(ctx, tenant, user)
	} else if err != nil {
		return "", err
	}
	return a.newAdmin(ctx, tenant, user)
}

// newAdmin makes an admin of a tenant that exists, if there is no such user, and a key.
func (a *Admin) newAdmin(ctx context.Context, tenant, user string) (string, error) {
	o := store.Owner{Tenant: tenant, User: user}
	_, err := a.store.CreateUser(ctx, store.NewUser{Owner: o, Role: commonv1.Role_ROLE_ADMIN})
	if errors.Is(err, store.ErrExists) {
		return a.NewKey(ctx, tenant, user)
	}
	if errors.Is(err, store.ErrNotFound) {
		return "", ErrNoUser
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
// is not an admin becomes one; without a user it makes the admin FirstAdmin. It returns
// the key's secret, or ErrNoUser.
func (a *Admin) NewKey(ctx context.Context, tenant, user string) (string, error) {
	if user == "" {
		return a.newAdmin(ctx, tenant, FirstAdmin)
	}
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
