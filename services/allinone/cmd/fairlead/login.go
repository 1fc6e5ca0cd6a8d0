package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// account is the server of a credential.
type account struct {
	Server string `default:"127.0.0.1:9090" placeholder:"HOST:PORT" env:"FAIRLEAD_SERVER" help:"gRPC address of the server, https://HOST:PORT where it speaks TLS."`
}

// loginCommand keeps a credential for a server.
type loginCommand struct {
	account
	endpoint.TLSFlags
	Key      bool   `help:"Read a key from standard input without asking."`
	Issuer   string `placeholder:"URL" help:"Log in at this OpenID provider, in a browser on any device."`
	ClientID string `name:"client-id" default:"fairlead" help:"With --issuer: the id of this program at the provider."`
}

// Run checks a credential and keeps it.
func (c loginCommand) Run(ctx context.Context, s stdio) error {
	e, err := c.Endpoint(c.Server, nil)
	if err != nil {
		return err
	}
	all, err := endpoint.ReadCredentials(s.env)
	if err != nil {
		return err
	}
	made := endpoint.Credential{TLS: e.TLS}
	if c.Issuer != "" {
		made.Login, err = endpoint.Login(ctx, c.Issuer, c.ClientID, s.err)
	} else {
		made.Key, err = c.readKey(s)
	}
	if err != nil {
		return err
	}
	who, err := c.check(ctx, e, made)
	if err != nil {
		return err
	}
	all.Servers[e.Key()] = made
	if err := all.Write(); err != nil {
		return err
	}
	if key := strings.TrimSpace(s.env(endpoint.KeyVariable)); key != "" && key != made.Key {
		fmt.Fprintf(s.err, "WARNING: %s has another key, which wins over this login. Unset the variable to use the login.\n", endpoint.KeyVariable)
	}
	_, err = fmt.Fprintf(s.out, "Logged in at %s%s. The credential is in %s.\n", c.Server, who, all.Path)
	return err
}

// readKey asks for a key. A terminal does not show it.
func (c loginCommand) readKey(s stdio) (string, error) {
	file, ok := s.in.(*os.File)
	if ok && !c.Key && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(s.err, "Key (fl_…): ")
		raw, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(s.err)
		return keyIn(string(raw), err)
	}
	line, err := bufio.NewReader(io.LimitReader(s.in, 4096)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return keyIn(line, err)
}

func keyIn(text string, err error) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the key: %w", err)
	case !strings.HasPrefix(text, "fl_") || strings.ContainsAny(text, " \t\r\n"):
		return "", usage("that is not a key: a key begins with fl_; `fairlead keys create` and `fairlead admin init` print one")
	}
	return text, nil
}

// check asks the server for the user of a credential. A credential that is limited to other scopes is good, too.
func (loginCommand) check(ctx context.Context, e endpoint.Endpoint, made endpoint.Credential) (string, error) {
	bearer := made.Key
	if made.Login != nil {
		bearer = made.Login.Bearer()
	}
	options, err := e.Options()
	if err != nil {
		return "", err
	}
	conn, err := rpc.Dial(e.Address, rpc.WithDialOptions(append(options, endpoint.Sending(func(context.Context) (string, error) { return bearer, nil })...)...))
	if err != nil {
		return "", err
	}
	me, err := sessionv1.NewIdentityServiceClient(conn).GetCurrentUser(ctx, &sessionv1.GetCurrentUserRequest{})
	if apierr.Code(err) == codes.PermissionDenied {
		err = nil
	}
	if err := errors.Join(e.Explain(ctx, terminal.Explained(err)), conn.Close()); err != nil {
		return "", err
	}
	if me == nil {
		return "", nil
	}
	return " as " + me.GetUser() + " of " + me.GetTenant(), nil
}

// logoutCommand forgets a credential.
type logoutCommand struct{ account }

// Run removes the credential of a server from the file.
func (c logoutCommand) Run(s stdio) error {
	all, err := endpoint.ReadCredentials(s.env)
	if err != nil {
		return err
	}
	e, err := endpoint.TLSFlags{}.Endpoint(c.Server, nil)
	if err != nil {
		return err
	}
	if _, ok := all.Servers[e.Key()]; !ok {
		_, err := fmt.Fprintf(s.out, "There is no credential for %s.\n", c.Server)
		return err
	}
	delete(all.Servers, e.Key())
	if err := all.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "The credential for %s is deleted here. A key stays valid until it is revoked (fairlead keys revoke).\n", c.Server)
	return err
}

// whoami shows for whom the server takes the caller.
type whoami struct{ plainJSON }

func (whoami) request() proto.Message { return &sessionv1.GetCurrentUserRequest{} }

func (whoami) show(s stdio, me *sessionv1.GetCurrentUserResponse) error {
	rows := [][]string{{"tenant", bare(me.GetTenant())}, {"user", userID(me.GetUser())}, {"role", roleName(me.GetRole())}}
	if len(me.GetScopes()) > 0 {
		rows = append(rows, []string{"scopes", strings.Join(me.GetScopes(), ", ")})
	}
	if me.GetCredential() != "" {
		rows = append(rows, []string{"credential", me.GetCredential()})
	}
	return columns(s.out, rows)
}
