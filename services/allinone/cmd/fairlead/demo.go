package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/allinone/internal/demonstration"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/session/demo"
)

// demoCommand runs the demonstration.
type demoCommand struct {
	Real bool `help:"Use a real model, with ANTHROPIC_API_KEY or OPENAI_API_KEY, instead of the scripted one."`
}

// Help says what happens.
func (demoCommand) Help() string {
	return `Starts a server with a temporary data directory on a free port of this machine, shows a small program whose test fails,
lets the agent coder repair it over the REST API, and checks that the test is green. The exit code is 0 only then.`
}

// Run runs the demonstration in a directory that it removes.
func (c demoCommand) Run(ctx context.Context, s stdio) (err error) {
	if c.Real && s.env("ANTHROPIC_API_KEY") == "" && s.env("OPENAI_API_KEY") == "" {
		return usage("--real needs a key: set ANTHROPIC_API_KEY or OPENAI_API_KEY")
	}
	data, err := os.MkdirTemp("", "fairlead-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	if err := os.Chmod(data, 0o711); err != nil { //nolint:gosec // the users of workspaces pass through, as root's sandbox needs
		return err
	}
	conf, err := c.load(data)
	if err != nil {
		return err
	}
	return withTelemetry(ctx, conf, s.err, func(tel *telemetry.Telemetry) error {
		address := make(chan string, 1)
		listening := func(face, at string) {
			if face == "http" {
				address <- at
			}
		}
		return inProcess(ctx, conf, tel, listening, func(ctx context.Context, h *host.Host, peers grpc.ClientConnInterface) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case at := <-address:
				return terminal.Explained(demonstrate(ctx, s, h, peers, "http://"+at))
			}
		})
	})
}

// demonstrate runs the demonstration on a server.
func demonstrate(ctx context.Context, s stdio, h *host.Host, peers grpc.ClientConnInterface, url string) error {
	ctx = principal.With(ctx, principal.Service("default", "default")) // it seeds and tests a workspace
	return demonstration.Demonstration{
		Files: demo.Files(), Source: "stats.sh", Test: "test.sh", Prompt: demo.Prompt,
		URL: url, Peers: peers, Root: os.Getuid() == 0, Model: h.Model, Scripted: h.Scripted,
		Out:  s.out,
		View: terminal.NewRenderer(s.out, terminal.Options{Colors: terminal.Colors(s.out, s.env), Lines: 8}),
	}.Run(ctx)
}

// load makes the configuration. Of the environment it takes only what is about
// the model, the sandbox and the log: the demonstration shall touch no database.
func (c demoCommand) load(data string) (host.Config, error) {
	conf := host.Defaults(data)
	conf.Log.Level = "warn"
	own := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, config.Project) && !strings.HasPrefix(e, config.Project+"SANDBOX_") &&
			!strings.HasPrefix(e, config.Project+"LOG_") && !strings.HasPrefix(e, config.Project+"MODEL=")
	})
	o := loadOptions(nil, io.Discard)
	o.Environ = own
	if err := load(&conf, o); err != nil {
		return conf, err
	}
	conf.Data, conf.HTTP, conf.GRPC, conf.Ops = data, "127.0.0.1:0", "", ""
	if !c.Real {
		conf.Session.Models.Model = demo.Model
	} else if conf.Scripted(conf.Session.Models.Model) && conf.Session.Models.Model != "" {
		return conf, fmt.Errorf("FAIRLEAD_MODEL is %s, a script; --real needs a real model", conf.Session.Models.Model)
	}
	return conf, nil
}
