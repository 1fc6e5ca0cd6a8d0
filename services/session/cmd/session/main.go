// Command session runs the session service alone.
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
	"github.com/fairlead/fairlead/services/session"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Session      session.Config   `key:",inline"`
	Server       rpc.Config       `key:",inline"`
	Log          telemetry.Config `key:"log"`
	Sandbox      string           `key:"sandbox" help:"address of the sandbox service's peer listener"`
	SandboxNodes []string         `key:"sandbox-nodes" help:"in place of sandbox: the sandbox nodes, each as name=address, where name is the node's own (its key node, or else its host name); session and tools need the same ones; workspaces from before there were several are on the first"`
	Tools        string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func defaults() configuration {
	c := configuration{
		Session: session.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(),
		Sandbox: "127.0.0.1:9192", Tools: "127.0.0.1:9191",
	}
	c.Session.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9090", "127.0.0.1:9190", "127.0.0.1:9290"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	c := defaults()
	if err := config.Load(&c, config.Options{Name: "session", Prefix: "FAIRLEAD_SESSION_", Args: args}); err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "session", version, c.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
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
	tools, err := rpc.Dial(c.Tools)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	s, err := session.New(ctx, c.Session, session.Deps{Sandbox: sandbox, Nodes: sandbox.Names(), Tools: tools, Log: tel.Log, Version: version})
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, c.Server, tel, nil, s)
}
