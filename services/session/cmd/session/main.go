// Command session runs the session service alone.
package main

import (
	"context"
	"errors"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/node"
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

func run(ctx context.Context, args []string) error {
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
