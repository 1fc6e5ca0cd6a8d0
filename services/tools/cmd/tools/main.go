// Command tools runs the tools service alone.
package main

import (
	"context"

	_ "github.com/fairlead/fairlead/gen/go/fairlead/session/v1" // of the RPC that knows the keys
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/tools"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Tools   tools.Config     `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
	Nodes   node.Config      `key:",inline"`
	Session string           `key:"session" help:"address of the session service's peer listener, or of its replicas', separated by commas; it knows the API keys of callers of the public listener"`
}

func defaults() configuration {
	c := configuration{Tools: tools.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(), Nodes: node.DefaultConfig(), Session: "127.0.0.1:9190"}
	c.Tools.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9091", "127.0.0.1:9191", "127.0.0.1:9291"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) error {
	c := defaults()
	s := program.Service{Name: "tools", Version: version, Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth}
	s.New = func(ctx context.Context, p *program.Parts) (rpc.Component, error) {
		if c.Tools.Advertise == "" {
			c.Tools.Advertise = c.Server.Peer
		}
		sandbox, err := p.DialNodes(c.Nodes)
		if err != nil {
			return nil, err
		}
		session, err := p.Dial(c.Session)
		if err != nil {
			return nil, err
		}
		if _, err := p.Authenticate(auth.RemoteKeys(session)); err != nil {
			return nil, err
		}
		return tools.New(ctx, c.Tools, tools.Deps{Sandbox: sandbox, Dial: p.Connect, Log: p.Log, Version: version})
	}
	return s.Run(ctx, args)
}
