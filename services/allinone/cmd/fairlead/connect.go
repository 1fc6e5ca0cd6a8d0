package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	client "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// target is the server of a command: a running one, or one that the command
// starts in this process, without listeners.
type target struct {
	Server string `placeholder:"HOST:PORT" env:"FAIRLEAD_SERVER" help:"gRPC address of a running server, https://HOST:PORT where it speaks TLS. Without it, the command runs a server of its own."`
	Data   string `placeholder:"DIR" help:"Without --server: the data directory."`
	Config string `placeholder:"FILE" help:"Without --server: the configuration file."`
	endpoint.TLSFlags
}

// backend is a server to talk to.
type backend struct {
	conn     grpc.ClientConnInterface
	sessions sessionv1.SessionServiceClient
	address  string // for people; empty for a server in this process
	scripted bool   // known only of a server in this process
}

// with connects, calls f and closes the connection. The context of f ends when
// the server in this process does.
func (t target) with(ctx context.Context, s stdio, f func(ctx context.Context, b *backend) error) error {
	if t.Server == "" {
		return t.embedded(ctx, s, f)
	}
	e, options, err := t.Credentialed(s.env, t.Server)
	if err != nil {
		return err
	}
	conn, err := rpc.Dial(e.Address, rpc.WithDialOptions(options...))
	if err != nil {
		return err
	}
	err = f(ctx, &backend{conn: conn, sessions: sessionv1.NewSessionServiceClient(conn), address: t.Server})
	return errors.Join(refused(s, e, e.Explain(ctx, err)), conn.Close())
}

// refused says what to do on a server without keys, and about a credential that is missing or not valid.
func refused(s stdio, e endpoint.Endpoint, err error) error {
	switch {
	case apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY):
		return fmt.Errorf("%w\nFor this server: `fairlead admin init %s`, then `fairlead login %s`", err, e.Flags(), e.Flags())
	case apierr.Code(err) != codes.Unauthenticated:
		return err
	case strings.TrimSpace(s.env(endpoint.KeyVariable)) != "":
		return fmt.Errorf("%w\nThe command sent the key in %s, which wins over `fairlead login`: change or unset the variable", err, endpoint.KeyVariable)
	}
	return fmt.Errorf("%w\nLog in with `fairlead login %s`, or set %s", err, e.Flags(), endpoint.KeyVariable)
}

// speaksHTTP1 reports whether the listener answered a gRPC connection with HTTP/1.1.
func speaksHTTP1(err error) bool {
	return strings.Contains(err.Error(), "looked like an HTTP/1.1 header")
}

// embedded runs a server in this process around f.
func (t target) embedded(ctx context.Context, s stdio, f func(ctx context.Context, b *backend) error) error {
	conf, err := t.load(s)
	if err != nil {
		return err
	}
	return withTelemetry(ctx, conf, s.err, func(tel *telemetry.Telemetry) error {
		return inProcess(ctx, conf, tel, nil, func(ctx context.Context, h *host.Host, peers grpc.ClientConnInterface) error {
			return f(ctx, &backend{conn: peers, sessions: sessionv1.NewSessionServiceClient(peers), scripted: h.Scripted})
		})
	})
}

// load reads the configuration of a server without listeners.
func (t target) load(s stdio) (host.Config, error) {
	conf, err := t.configured(s)
	conf.HTTP, conf.GRPC, conf.Ops = "", "", ""
	return conf, err
}

// configured reads the configuration of a server.
func (t target) configured(s stdio) (host.Config, error) {
	conf := host.Defaults(dataDir(s.env))
	conf.Log.Level = "warn"
	var args []string
	if t.Config != "" {
		args = append(args, "--config="+t.Config)
	}
	if t.Data != "" {
		args = append(args, "--data="+t.Data)
	}
	return conf, load(&conf, loadOptions(args, io.Discard))
}

// inProcess runs a host for as long as f takes.
func inProcess(ctx context.Context, conf host.Config, tel *telemetry.Telemetry, listening func(face, address string),
	f func(ctx context.Context, h *host.Host, peers grpc.ClientConnInterface) error,
) error {
	h, err := host.New(ctx, conf, tel, version)
	if err != nil {
		return locked(err, conf.Data)
	}
	peers := h.Peers
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	ended := make(chan error, 1)
	go func() {
		err := h.Run(serving, listening)
		if err != nil {
			abandon(fmt.Errorf("the server in this process ended: %w", err))
		}
		ended <- err
	}()
	err = f(ctx, h, peers)
	stop()
	return errors.Join(err, <-ended)
}

// locked says what to do when another process uses the data directory.
func locked(err error, data string) error {
	if !errors.Is(err, sqlite.ErrLocked) && !errors.Is(err, syscall.EWOULDBLOCK) {
		return err
	}
	use := "It is a command that ends by itself, or its gRPC address is after gRPC in its first lines: wait, or use it with --server"
	if address := host.Addresses(data)["public"]; address != "" {
		use = fmt.Sprintf("Use it, with --server %s or FAIRLEAD_SERVER", address)
	}
	return fmt.Errorf("%w\nAnother Fairlead runs on this data directory. %s, or choose another directory with --data", err, use)
}

// usage returns a fault in the command line.
func usage(format string, args ...any) error { return terminal.Usage(format, args...) }

// positive refuses a --limit below 1.
func positive(limit int) error {
	if limit < 1 {
		return usage("--limit must be at least 1")
	}
	return nil
}

// sessionName returns the resource name of a session that a person named.
func sessionName(given string) string {
	return "sessions/" + strings.TrimPrefix(given, "sessions/")
}

// retry makes a first request, which may be repeated. It is less patient than a turn.
func retry(ctx context.Context, f func() error) error {
	b := client.DefaultBackoff()
	b.Attempts = 3
	return client.Retry(ctx, b, f)
}
