// Command session runs the session service alone.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/session"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Session session.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
	Nodes   node.Config      `key:",inline"`
	Tools   string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func defaults() configuration {
	c := configuration{
		Session: session.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(),
		Nodes: node.DefaultConfig(), Tools: "127.0.0.1:9191",
	}
	c.Session.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9090", "127.0.0.1:9190", "127.0.0.1:9290"
	return c
}

func main() { program.Main(run) }

// admin is the command `session admin init` or `session admin key`, which works on the database itself.
func admin(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "init" && args[0] != "key" {
		return &program.ExitError{Code: 2, Err: errors.New("usage: session admin init|key [--tenant ID] [--user ID]\n" +
			"init makes the first admin and key, key makes a key for an admin who has lost theirs; with SQLite, stop session first")}
	}
	c := struct {
		Program configuration      `key:",inline"`
		Admin   session.AdminFlags `key:",inline"`
	}{defaults(), session.AdminFlags{Tenant: principal.Default().Tenant}}
	if err := config.Load(&c, config.Options{Name: "session", Prefix: config.Project + "SESSION_", Args: args[1:]}); err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "session", version, c.Program.Log, os.Stderr)
	if err != nil {
		return err
	}
	return errors.Join(c.Admin.Run(ctx, args[0], c.Program.Session, tel.Log, out), tel.Shutdown(ctx))
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "admin" {
		return admin(ctx, args[1:], os.Stdout)
	}
	c := defaults()
	s := program.Service{Name: "session", Version: version, Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth}
	s.New = func(ctx context.Context, p *program.Parts) (rpc.Component, error) {
		sandbox, err := p.DialNodes(c.Nodes)
		if err != nil {
			return nil, err
		}
		tools, err := p.Dial(c.Tools)
		if err != nil {
			return nil, err
		}
		s, err := session.New(ctx, c.Session, session.Deps{Sandbox: sandbox, Nodes: sandbox.Names(), Tools: tools, Log: p.Log, Version: version})
		if err != nil {
			return nil, err
		}
		if _, err := p.Authenticate(s.Keys()); err != nil {
			return nil, errors.Join(err, s.Close()) //nolint:contextcheck // closing must not end with ctx
		}
		return s, nil
	}
	return s.Run(ctx, args)
}
