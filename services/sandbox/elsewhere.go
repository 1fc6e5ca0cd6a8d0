//go:build !linux

// Package sandbox runs the commands of sessions in isolation, which takes Linux.
// On other systems it has what lets a program that is also a client be built, and no service.
package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Config has the keys that a program sets by itself.
type Config struct {
	Data string `key:"data" help:"directory that holds the workspaces"`
	Node string `key:"node" help:"name of this node; empty takes the host's name"`
}

// Defaults are the defaults of every key.
func Defaults() Config { return Config{Data: "data/sandbox"} }

// Deps are what the service takes from its program.
type Deps struct {
	Log *slog.Logger
}

// Service is never made here.
type Service struct{ rpc.Component }

// New fails as Supported does.
func New(context.Context, Config, Deps) (*Service, error) { return nil, Supported() }

// Supported returns why the service cannot run on this system, and what to do.
func Supported() error {
	return fmt.Errorf("the server needs Linux, because its sandbox is made of Linux namespaces, and this system is %s. "+
		"Run it in a container or a virtual machine with Linux, or on another machine, "+
		"and talk to it from here: fairlead run --server HOST:9090, or set FAIRLEAD_SERVER", runtime.GOOS)
}
