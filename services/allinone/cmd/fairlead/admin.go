package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/client"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/session"
)

// adminCommand works on the data of a server itself.
type adminCommand struct {
	Init adminInitCommand `cmd:"" help:"Make the first admin and key, which closes the server to calls without a credential."`
	Key  adminKeyCommand  `cmd:"" help:"Make a key for an admin who has lost theirs. The server must be stopped, unless it uses Postgres."`
}

// admins is a database and a user in it.
type admins struct {
	Tenant string `default:"default" help:"The tenant."`
	User   string `default:"admin" help:"The id of its admin."`
	Data   string `placeholder:"DIR" help:"The data directory."`
	Config string `placeholder:"FILE" help:"The configuration file."`
}

func (a admins) load(s stdio) (host.Config, session.Config, error) {
	conf, err := target{Data: a.Data, Config: a.Config}.load(s)
	if err != nil {
		return conf, session.Config{}, err
	}
	c, err := conf.SessionConfig()
	return conf, c, err
}

// open calls f with the database.
func (admins) open(ctx context.Context, c session.Config, f func(*session.Admin) (string, error)) (secret string, err error) {
	a, err := session.OpenAdmin(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	secret, err = f(a)
	return secret, errors.Join(err, a.Close())
}

type adminInitCommand struct {
	admins
	Server string `placeholder:"HOST:PORT" help:"The gRPC address of a running server, https://HOST:PORT where it speaks TLS; without it, the database of the data directory."`
	tlsFlags
}

// Run makes the first key, through a server that is named or in a database.
func (c adminInitCommand) Run(ctx context.Context, s stdio) error {
	closed, address := c.Server, c.Server
	var secret string
	var err error
	if c.Server != "" {
		var e endpoint
		if e, err = c.endpoint(c.Server, nil); err == nil {
			secret, err = c.through(ctx, e)
		}
	} else {
		closed, address, secret, err = c.local(ctx, s)
	}
	if errors.Is(err, session.ErrInitialized) {
		return errors.New("this server has a key already, so it is set up.\n" +
			"Make more with `fairlead keys create`, after `fairlead login`. If no admin has a key any more, stop the server and run `fairlead admin key`")
	}
	if err != nil {
		return err
	}
	return c.show(s, closed, address, secret)
}

// local makes the first key in the database, or through the server that uses it. It returns the data directory and the
// address of its server.
func (c adminInitCommand) local(ctx context.Context, s stdio) (closed, address, secret string, err error) {
	conf, sessions, err := c.load(s)
	if err != nil {
		return "", "", "", err
	}
	secret, err = c.open(ctx, sessions, func(a *session.Admin) (string, error) { return a.Init(ctx, c.Tenant, c.User) })
	if errors.Is(err, sqlite.ErrLocked) {
		secret, err = c.running(ctx, conf, err)
	}
	return conf.Data, addressOf(conf), secret, err
}

// addressOf returns the address of the server that uses a data directory, or will.
func addressOf(conf host.Config) string {
	return cmp.Or(host.Addresses(conf.Data)["public"], conf.GRPC, "HOST:PORT")
}

// show prints a key, this once, and which server wants one from now on.
func (a admins) show(s stdio, closed, address, secret string) error {
	_, err := fmt.Fprintf(s.out, "The key of users/%s in the tenant %s, which is shown only now:\n\n  %s\n\n"+
		"From now on every call to the server of %s needs a key. Give this one to the command line:\n\n  fairlead login --server %s\n", a.User, a.Tenant, secret, closed, address)
	return err
}

// running makes the first key through a running server, which is open until then.
func (c adminInitCommand) running(ctx context.Context, conf host.Config, locked error) (string, error) {
	address := host.Addresses(conf.Data)["public"]
	if address == "" {
		return "", fmt.Errorf("%w\nThe program that uses the data directory has no gRPC listener: wait for its end, or stop it", locked)
	}
	e := endpoint{given: address, address: address}
	if conf.TLS.Cert != "" { // the server is this machine's, by whatever name its certificate has
		e.tls, e.pinned = &serverTLS{}, conf.TLS.Cert
	}
	return c.through(ctx, e)
}

// through makes the first key through the server at an address.
func (c adminInitCommand) through(ctx context.Context, e endpoint) (string, error) {
	options, err := e.options()
	if err != nil {
		return "", err
	}
	conn, err := rpc.Dial(e.address, rpc.WithDialOptions(options...))
	if err != nil {
		return "", err
	}
	secret, err := c.call(ctx, sessionv1.NewIdentityServiceClient(conn))
	if apierr.Code(err) == codes.Unauthenticated {
		err = session.ErrInitialized
	}
	return secret, errors.Join(client.Explained(e.explain(ctx, err)), conn.Close())
}

func (c adminInitCommand) call(ctx context.Context, people sessionv1.IdentityServiceClient) (string, error) {
	keys, err := people.ListKeys(ctx, &sessionv1.ListKeysRequest{PageSize: 1})
	if err != nil {
		return "", err
	}
	if len(keys.GetKeys()) > 0 {
		return "", session.ErrInitialized
	}
	if c.Tenant != "default" {
		made, err := people.CreateTenant(ctx, &sessionv1.CreateTenantRequest{TenantId: c.Tenant, AdminId: c.User, RequestId: id.New()})
		return made.GetSecret(), err
	}
	_, err = people.CreateUser(ctx, &sessionv1.CreateUserRequest{UserId: c.User, User: &sessionv1.User{Role: commonv1.Role_ROLE_ADMIN}, RequestId: id.New()})
	if err != nil && !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS) {
		return "", err
	}
	made, err := people.CreateKey(ctx, &sessionv1.CreateKeyRequest{
		Key: &sessionv1.Key{User: "users/" + c.User, Role: commonv1.Role_ROLE_ADMIN, Title: "fairlead admin"}, RequestId: id.New(),
	})
	return made.GetSecret(), err
}

type adminKeyCommand struct{ admins }

// Run makes a key in the database.
func (c adminKeyCommand) Run(ctx context.Context, s stdio) error {
	conf, sessions, err := c.load(s)
	if err != nil {
		return err
	}
	secret, err := c.open(ctx, sessions, func(a *session.Admin) (string, error) { return a.NewKey(ctx, c.Tenant, c.User) })
	switch {
	case errors.Is(err, sqlite.ErrLocked):
		return fmt.Errorf("%w\nA Fairlead runs on %s. Stop it first: this command works on the database itself", err, conf.Data)
	case errors.Is(err, session.ErrNoUser):
		return fmt.Errorf("the tenant %s has no user %s: name an existing one with --tenant and --user", c.Tenant, c.User)
	case err != nil:
		return err
	}
	return c.show(s, conf.Data, addressOf(conf), secret)
}
