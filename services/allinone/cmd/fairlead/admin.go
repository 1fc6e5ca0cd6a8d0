package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
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
	User   string `help:"The id of its admin; default: admin."`
	Data   string `placeholder:"DIR" help:"The data directory."`
	Config string `placeholder:"FILE" help:"The configuration file."`
}

// database is where an admin command makes a key.
type database struct {
	host    host.Config
	session session.Config
	address string // of the server that uses the database, or that its configuration names
}

func (a admins) load(s stdio) (database, error) {
	conf, err := target{Data: a.Data, Config: a.Config}.configured(s)
	if err != nil {
		return database{}, err
	}
	c, err := conf.SessionConfig()
	return database{conf, c, cmp.Or(host.Addresses(conf.Data)["public"], conf.GRPC)}, err
}

// make makes a key in the database.
func (a admins) make(ctx context.Context, command string, d database) (string, error) {
	return session.AdminFlags{Tenant: a.Tenant, User: a.User}.Make(ctx, command, d.session, slog.New(slog.DiscardHandler))
}

// show prints a key of the database, this once, and whether the server at its address takes it.
func (a admins) show(ctx context.Context, s stdio, d database, secret string) error {
	text := session.AdminFlags{Tenant: a.Tenant, User: a.User}.Text(secret, d.session)
	if d.address != "" {
		text += taken(ctx, own(d.host, d.address), secret)
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// askTime bounds the question whether a server takes a new key.
const askTime = 2 * time.Second

// tryKey calls a server with a key.
func tryKey(ctx context.Context, e endpoint.Endpoint, secret string) error {
	options, err := e.Options()
	if err != nil {
		return err
	}
	options = append(options, endpoint.Sending(func(context.Context) (string, error) { return secret, nil })...)
	conn, err := rpc.Dial(e.Address, rpc.WithDialOptions(options...))
	if err != nil {
		return err
	}
	_, err = sessionv1.NewIdentityServiceClient(conn).GetCurrentUser(ctx, &sessionv1.GetCurrentUserRequest{})
	return errors.Join(err, conn.Close())
}

// taken describes whether the server at an address accepts a new key.
func taken(ctx context.Context, e endpoint.Endpoint, secret string) string {
	address := e.Given
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	login := fmt.Sprintf("give the key to the command line:\n\n  fairlead login --server %s\n", address)
	err := tryKey(ctx, e, secret)
	switch {
	case err == nil:
		return fmt.Sprintf("The server at %s takes this key: %s", address, login)
	case apierr.Code(err) == codes.Unauthenticated:
		return fmt.Sprintf("WARNING: the server at %s refuses this key, because it uses another database. If you mean that server, "+
			"run this with its --data or --config, or with --server %s.\n", address, address)
	}
	return fmt.Sprintf("No server answers at %s now. Once it runs, %s", address, login)
}

type adminInitCommand struct {
	admins
	Server string `placeholder:"HOST:PORT" help:"The gRPC address of a running server, https://HOST:PORT where it speaks TLS; without it, the database of the data directory."`
	endpoint.TLSFlags
}

// Run makes the first key, through a server that is named or in a database.
func (c adminInitCommand) Run(ctx context.Context, s stdio) error {
	if c.Server != "" {
		e, err := c.Endpoint(c.Server, nil)
		if err != nil {
			return err
		}
		return c.through(ctx, s, e)
	}
	d, err := c.load(s)
	if err != nil {
		return err
	}
	secret, err := c.make(ctx, "init", d)
	if errors.Is(err, sqlite.ErrLocked) {
		return c.running(ctx, s, d.host, err)
	}
	if err != nil {
		return err
	}
	return c.show(ctx, s, d, secret)
}

// running makes the first key through a running server, which is open until then.
func (c adminInitCommand) running(ctx context.Context, s stdio, conf host.Config, locked error) error {
	address := host.Addresses(conf.Data)["public"]
	if address == "" {
		return fmt.Errorf("%w\nThe program that uses the data directory has no gRPC listener: wait for its end, or stop it", locked)
	}
	return c.through(ctx, s, own(conf, address))
}

// own returns the endpoint of the server of this machine with a configuration.
func own(conf host.Config, address string) endpoint.Endpoint {
	e := endpoint.Endpoint{Given: address, Address: address}
	if conf.TLS.Cert != "" { // the server is this machine's, by whatever name its certificate has
		e.Given, e.TLS, e.Pinned = "https://"+address, &endpoint.TLS{}, conf.TLS.Cert
	}
	return e
}

// through makes the first key through the server at an address.
func (c adminInitCommand) through(ctx context.Context, s stdio, e endpoint.Endpoint) error {
	options, err := e.Options()
	if err != nil {
		return err
	}
	address := e.Given
	conn, err := rpc.Dial(e.Address, rpc.WithDialOptions(options...))
	if err != nil {
		return err
	}
	secret, err := c.call(ctx, sessionv1.NewIdentityServiceClient(conn))
	err = errors.Join(err, conn.Close())
	switch {
	case errors.Is(err, session.ErrInitialized):
		return fmt.Errorf("the server at %s has a key already.\nMake more with `fairlead keys create`, after `fairlead login`", address)
	case apierr.Code(err) == codes.Unauthenticated:
		return fmt.Errorf("the server at %s needs a credential, so no first key can be made through it.\n"+
			"If you have a key, log in with `fairlead login %s`. If there is none yet, or no admin has one, make it in the server's database: "+
			"`fairlead admin init` or `fairlead admin key` with the server's --data or --config (with SQLite, stop the server first), "+
			"or `session admin init` where the services run apart (docs/deploy.md)", address, e.Flags())
	case err != nil:
		return e.Explain(ctx, terminal.Explained(err))
	}
	_, err = fmt.Fprintf(s.out, "The key of users/%s in the tenant %s, which is shown only now:\n\n  %s\n\n"+
		"From now on every call to the server at %s needs a key. Give this one to the command line:\n\n  fairlead login %s\n",
		cmp.Or(c.User, session.FirstAdmin), c.Tenant, secret, address, e.Flags())
	return err
}

func (c adminInitCommand) call(ctx context.Context, people sessionv1.IdentityServiceClient) (string, error) {
	user := cmp.Or(c.User, session.FirstAdmin)
	keys, err := people.ListKeys(ctx, &sessionv1.ListKeysRequest{PageSize: 1})
	if err != nil {
		return "", err
	}
	if len(keys.GetKeys()) > 0 {
		return "", session.ErrInitialized
	}
	if c.Tenant != "default" {
		made, err := people.CreateTenant(ctx, &sessionv1.CreateTenantRequest{TenantId: c.Tenant, AdminId: user, FirstKey: true, RequestId: id.New()})
		return made.GetSecret(), err
	}
	_, err = people.CreateUser(ctx, &sessionv1.CreateUserRequest{UserId: user, User: &sessionv1.User{Role: commonv1.Role_ROLE_ADMIN}, RequestId: id.New()})
	if err != nil && !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS) {
		return "", err
	}
	made, err := people.CreateKey(ctx, &sessionv1.CreateKeyRequest{
		Key: &sessionv1.Key{User: "users/" + user, Role: commonv1.Role_ROLE_ADMIN, Title: "fairlead admin"}, FirstKey: true, RequestId: id.New(),
	})
	return made.GetSecret(), err
}

type adminKeyCommand struct{ admins }

// Run makes a key in the database.
func (c adminKeyCommand) Run(ctx context.Context, s stdio) error {
	d, err := c.load(s)
	if err != nil {
		return err
	}
	secret, err := c.make(ctx, "key", d)
	switch {
	case errors.Is(err, sqlite.ErrLocked):
		return fmt.Errorf("%w\nA Fairlead runs on %s. Stop it first: this command works on the database itself", err, d.host.Data)
	case err != nil:
		return err
	}
	return c.show(ctx, s, d, secret)
}
