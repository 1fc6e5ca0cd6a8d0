package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/worker"
)

// workConfiguration is the configuration of `sandbox work`.
type workConfiguration struct {
	Worker  worker.Config    `key:",inline"`
	Sandbox sandbox.Config   `key:",inline"`
	Log     telemetry.Config `key:"log"`
}

func workDefaults() workConfiguration {
	c := workConfiguration{Worker: worker.DefaultConfig(), Sandbox: sandbox.Defaults(), Log: telemetry.DefaultConfig()}
	c.Sandbox.Data = "data/worker"
	return c
}

// workPrefix begins the names in the environment.
const workPrefix = config.Project + "SANDBOX_"

// writeWorkKeys writes the section of docs/configuration.md with the keys that the service does not have.
func writeWorkKeys(w io.Writer) error {
	c := worker.DefaultConfig()
	rows := config.Table(&c, config.Options{Prefix: workPrefix})
	const title = "Workers: `sandbox work`, which has these keys and those of `sandbox` but for the listeners and `auth`; `data` is `data/worker`"
	return config.WriteTable(w, title, 1, rows)
}

// work makes the sandbox a worker of a Managed Agents server. The services are served to this process alone.
func work(ctx context.Context, args []string) (err error) {
	c := workDefaults()
	if err := config.Load(&c, config.Options{Name: "sandbox work", Prefix: workPrefix, Args: args}); err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "sandbox", version, c.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(ctx)) }()
	box, err := sandbox.New(ctx, c.Sandbox, sandbox.Deps{Log: tel.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	keys := internaltoken.Random()
	pipe := rpc.NewPipe(keys, rpc.WithFallback(principal.Service("default", "default")))
	server := rpc.NewPeerServer(slog.New(warnings{tel.Log.Handler()}), keys) //nolint:contextcheck // Stop ends it
	box.RegisterPeer(server)
	w, err := worker.New(c.Worker, pipe.Conn, c.Sandbox.NetworkPolicy(), tel.Log)
	if err != nil {
		return errors.Join(err, pipe.Conn.Close())
	}
	upkeep, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group errgroup.Group
	group.Go(func() error { return server.Serve(pipe.Listener()) })
	group.Go(func() error { return box.Run(upkeep) })
	err = w.Run(ctx)
	stop()
	closed := pipe.Conn.Close()
	server.Stop()
	return errors.Join(err, closed, group.Wait())
}

// warnings drops the lines of the requests that the worker makes of its own sandbox and that succeed.
type warnings struct{ slog.Handler }

// Enabled reports whether a line is a warning at least.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
