// Command gateway runs the gateway alone.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// version is set when the program is linked.
var version = "dev"

// flushTimeout bounds the sending of the last spans.
const flushTimeout = 5 * time.Second

type configuration struct {
	Gateway gateway.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Session string           `key:"session" help:"address of the session service's peer listener, or of its replicas', separated by commas"`
	Tools   string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func defaults() configuration {
	c := configuration{
		Gateway: gateway.DefaultConfig(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(),
		Session: "127.0.0.1:9190", Tools: "127.0.0.1:9191",
	}
	c.Server.HTTP = "127.0.0.1:8080"
	return c
}

func main() { program.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	c := defaults()
	if err := config.Load(&c, config.Options{Name: "gateway", Prefix: "FAIRLEAD_GATEWAY_", Args: args}); err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "gateway", version, c.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, tel.Shutdown(flush))
	}()
	session, err := rpc.Dial(c.Session)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	tools, err := rpc.Dial(c.Tools)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	s, err := gateway.New(ctx, c.Gateway, gateway.Deps{Session: session, Tools: tools, Log: tel.Log})
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, c.Server, tel, nil, s)
}
