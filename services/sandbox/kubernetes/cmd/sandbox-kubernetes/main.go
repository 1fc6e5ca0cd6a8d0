// Command sandbox-kubernetes runs the sandbox service with a pod of a cluster for each sandbox.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
)

// version is set when the program is linked.
var version = "dev"

type configuration struct {
	Sandbox    sandbox.Config    `key:",inline"`
	Kubernetes kubernetes.Config `key:"kubernetes"`
	Server     rpc.Config        `key:",inline"`
	Log        telemetry.Config  `key:"log"`
	Auth       auth.Config       `key:"auth"`
}

func defaults() configuration {
	c := configuration{Sandbox: sandbox.Defaults(), Kubernetes: kubernetes.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig()}
	c.Sandbox.Driver = ""
	c.Server.Peer, c.Server.Ops = "127.0.0.1:9192", "127.0.0.1:9292"
	return c
}

func main() { program.Main(run) }

// run serves. It is the service sandbox: its variables and traces have that name.
func run(ctx context.Context, args []string) error {
	c := defaults()
	if slices.Equal(args, []string{"config-table"}) {
		return writeKeys(os.Stdout, c.Kubernetes)
	}
	s := program.Service{Name: "sandbox", Version: version, Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth}
	s.New = func(ctx context.Context, p *program.Parts) (rpc.Component, error) {
		return sandbox.New(ctx, c.Sandbox, sandbox.Deps{Log: p.Log, Driver: c.Kubernetes.Driver()})
	}
	return s.Run(ctx, args)
}

// writeKeys writes the section of docs/configuration.md with the keys that the program sandbox does not have.
func writeKeys(w io.Writer, c kubernetes.Config) error {
	own := struct {
		Kubernetes kubernetes.Config `key:"kubernetes"`
	}{c}
	rows := config.Table(&own, config.Options{Prefix: "FAIRLEAD_SANDBOX_"})
	const title = "Pods: `sandbox-kubernetes`, which has these keys and those of `sandbox` but for `driver` and `level`"
	return errors.Join(config.WriteTable(w, title, 1, rows), config.WriteEntries(w, rows))
}
