// Command sandbox runs the sandbox service alone. `sandbox work` makes it a worker of a Managed Agents server.
package main

import (
	"context"
	"os"
	"slices"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Sandbox sandbox.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
}

func defaults() configuration {
	c := configuration{Sandbox: sandbox.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig()}
	c.Server.Peer, c.Server.Ops = "127.0.0.1:9192", "127.0.0.1:9292"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) error {
	if slices.Equal(args, []string{"config-table"}) {
		return writeWorkKeys(os.Stdout)
	}
	if len(args) > 0 && args[0] == "work" {
		return work(ctx, args[1:])
	}
	c := defaults()
	s := program.Service{Name: "sandbox", Version: version, Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth}
	s.New = func(ctx context.Context, p *program.Parts) (rpc.Component, error) {
		return sandbox.New(ctx, c.Sandbox, sandbox.Deps{Log: p.Log})
	}
	return s.Run(ctx, args)
}
