// Command tools runs the tools service alone.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/tools"
)

// version is set when the program is linked.
var version = "dev"

// flushTimeout bounds sending the last spans.
const flushTimeout = 5 * time.Second

type configuration struct {
	Tools        tools.Config     `key:",inline"`
	Server       rpc.Config       `key:",inline"`
	Log          telemetry.Config `key:"log"`
	Sandbox      string           `key:"sandbox" help:"address of the sandbox service's peer listener"`
	SandboxNodes []string         `key:"sandbox-nodes" help:"in place of sandbox: the sandbox nodes, each as name=address, where name is the node's own (its key node, or else its host name); session and tools need the same ones; workspaces from before there were several are on the first"`
}

func defaults() configuration {
	c := configuration{
		Tools: tools.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(),
		Sandbox: "127.0.0.1:9192",
	}
	c.Tools.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9091", "127.0.0.1:9191", "127.0.0.1:9291"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	c := defaults()
	if err := config.Load(&c, config.Options{Name: "tools", Prefix: "FAIRLEAD_TOOLS_", Args: args}); err != nil {
		return err
	}
	if c.Tools.Advertise == "" {
		c.Tools.Advertise = c.Server.Peer
	}
	tel, err := telemetry.Setup(ctx, "tools", version, c.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, tel.Shutdown(flush))
	}()
	nodes := c.SandboxNodes
	if len(nodes) == 0 {
		nodes = []string{"=" + c.Sandbox}
	}
	sandbox, err := node.Dial(nodes, func(address string) (*grpc.ClientConn, error) { return rpc.Dial(address) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close()) }()
	s, err := tools.New(ctx, c.Tools, tools.Deps{Sandbox: sandbox, Log: tel.Log})
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, c.Server, tel, nil, s)
}
