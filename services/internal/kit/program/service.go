package program

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// Service is a program that serves one component.
type Service struct {
	Name    string // names the variables in the environment and the traces: FAIRLEAD_NAME_...
	Version string
	Config  any               // points to the configuration, which holds the defaults
	Server  *rpc.Config       // the part of Config that Run serves with
	Log     *telemetry.Config // the part of Config that Run logs with
	Auth    *auth.Config      // the part of Config by which Run knows callers
	// New makes the component after Config has been loaded.
	New func(ctx context.Context, p *Parts) (rpc.Component, error)
}

// Run loads the configuration, sets up telemetry, makes the component and serves it until ctx ends.
func (s Service) Run(ctx context.Context, args []string) (err error) {
	prefix := config.Project + strings.ToUpper(s.Name) + "_"
	if err := config.Load(s.Config, config.Options{Name: s.Name, Prefix: prefix, Args: args}); err != nil {
		return err
	}
	keys, err := s.Auth.Keys()
	if err != nil {
		return &config.Error{Name: s.Name, Faults: []string{err.Error()}}
	}
	s.Server.Keys = keys
	tel, err := telemetry.Setup(ctx, s.Name, s.Version, *s.Log, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(ctx)) }()
	files, err := certificate.Open(s.Server.TLS)
	if err != nil {
		return &config.Error{Name: s.Name, Faults: []string{"tls." + err.Error()}}
	}
	p := &Parts{Log: tel.Log, Keys: keys, files: files, service: s}
	defer func() { err = errors.Join(err, p.close()) }()
	component, err := s.New(ctx, p)
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, *s.Server, tel, nil, component)
}

// Parts is what a component is made of. Its connections are closed after the component.
type Parts struct {
	Log  *slog.Logger
	Keys *internaltoken.Keys // of the calls to other services

	service Service
	files   *certificate.Files
	closers []io.Closer
}

// Authenticate makes what knows the clients of the program, by these API keys.
func (p *Parts) Authenticate(keys auth.Keys) (*auth.Authenticator, error) {
	a, err := auth.New(*p.service.Auth, keys, p.service.Server.Reachable(), p.Log)
	if err != nil {
		return nil, &config.Error{Name: p.service.Name, Faults: []string{err.Error()}}
	}
	p.service.Server.Auth = a
	return a, nil
}

// Connect returns a connection to a service's peer listener, which the caller closes.
func (p *Parts) Connect(address string) (*grpc.ClientConn, error) {
	return rpc.Dial(address, rpc.WithKeys(p.Keys), rpc.WithTLS(p.files))
}

// Dial is Connect for a connection that is closed after the component.
func (p *Parts) Dial(address string) (*grpc.ClientConn, error) {
	conn, err := p.Connect(address)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, conn)
	return conn, nil
}

// DialNodes returns connections to the sandbox nodes.
func (p *Parts) DialNodes(c node.Config) (*node.Set, error) {
	set, err := node.Dial(c.List(), p.Connect)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, set)
	return set, nil
}

// close closes the connections, the last one first.
func (p *Parts) close() error {
	var faults []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		faults = append(faults, p.closers[i].Close())
	}
	return errors.Join(faults...)
}
