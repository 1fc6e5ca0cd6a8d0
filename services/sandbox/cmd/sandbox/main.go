// Command sandbox runs the sandbox service alone.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
)

// version is set when the program is linked.
var version = "dev"

// flushTimeout bounds sending the last spans.
const flushTimeout = 5 * time.Second

type configuration struct {
	Sandbox sandbox.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
}

func defaults() configuration {
	c := configuration{Sandbox: sandbox.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig()}
	c.Server.Peer, c.Server.Ops = "127.0.0.1:9192", "127.0.0.1:9292"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	c := defaults()
	if err := config.Load(&c, config.Options{Name: "sandbox", Prefix: "FAIRLEAD_SANDBOX_", Args: args}); err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "sandbox", version, c.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, tel.Shutdown(flush))
	}()
	s, err := sandbox.New(ctx, c.Sandbox, sandbox.Deps{Log: tel.Log})
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, c.Server, tel, nil, s)
}
