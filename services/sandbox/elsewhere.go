//go:build !linux

// Package sandbox runs the commands of sessions in isolation, which needs Linux. On other systems it only
// lets a program that is also a client be built; there is no service.
package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Config has the keys that a program sets itself.
type Config struct {
	Data string `key:"data" help:"directory that holds the workspaces"`
	Node string `key:"node" help:"name of this node; empty takes the host's name"`
}

// Exports reports false: there are no workspaces.
func (Config) Exports() bool { return false }

// Defaults returns the defaults of all keys.
func Defaults() Config { return Config{Data: "data/sandbox"} }

// Deps are the service's dependencies.
type Deps struct {
	Log *slog.Logger
}

// Service is never made here.
type Service struct{ rpc.Component }

// New returns the error of Supported.
func New(context.Context, Config, Deps) (*Service, error) { return nil, Supported() }

// Supported returns why the service cannot run on this system, and what to do.
func Supported() error {
	return fmt.Errorf("the server needs Linux, because its sandbox is made of Linux namespaces, and this system is %s. "+
		"Run it in a container or a virtual machine with Linux, or on another machine, "+
		"and talk to it from here: fairlead run --server HOST:9090, or set FAIRLEAD_SERVER", runtime.GOOS)
}

// NetworkPolicy returns nothing: there are no workspaces.
func (Config) NetworkPolicy() *sandboxv1.NetworkPolicy { return nil }
