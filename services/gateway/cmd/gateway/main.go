// Command gateway runs the gateway alone.
package main

import (
	"context"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Gateway gateway.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
	Session string           `key:"session" help:"address of the session service's peer listener, or of its replicas', separated by commas"`
	Tools   string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func defaults() configuration {
	c := configuration{
		Gateway: gateway.DefaultConfig(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(),
		Session: "127.0.0.1:9190", Tools: "127.0.0.1:9191",
	}
	c.Server.HTTP, c.Server.Public = "127.0.0.1:8080", "127.0.0.1:9092"
	c.Gateway.MCPSessions = false // there may be several replicas
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) error {
	c := defaults()
	s := program.Service{Name: "gateway", Version: version, Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth}
	s.New = func(ctx context.Context, p *program.Parts) (rpc.Component, error) {
		session, err := p.Dial(c.Session)
		if err != nil {
			return nil, err
		}
		tools, err := p.Dial(c.Tools)
		if err != nil {
			return nil, err
		}
		a, err := p.Authenticate(auth.RemoteKeys(session))
		if err != nil {
			return nil, err
		}
		return gateway.New(ctx, c.Gateway, gateway.Deps{Session: session, Tools: tools, Auth: a, ServesGRPC: true, Secret: p.Keys.Derive("mcp"), Version: version, Log: p.Log})
	}
	return s.Run(ctx, args)
}
