package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
)

// dataHome is where data is when neither the environment nor a flag says so.
const dataHome = "~/.local/share/fairlead"

// loadOptions say where the all-in-one program's configuration comes from.
// Some variables are a client's.
func loadOptions(args []string, out io.Writer) config.Options {
	return config.Options{Name: "fairlead serve", Prefix: "FAIRLEAD_", Args: args, IgnoreEnv: endpoint.Variables, Usage: out}
}

// load reads the configuration of a server, on a system that can run one.
func load(conf *host.Config, o config.Options) error {
	if err := sandbox.Supported(); err != nil {
		return err
	}
	return config.Load(conf, o)
}

// dataDir returns the user's data directory.
func dataDir(env func(string) string) string {
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fairlead")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join("data", "fairlead") // no home: beside the caller
	}
	return filepath.Join(home, strings.TrimPrefix(dataHome, "~/"))
}

// serveCommand runs the server. Its flags are those of the configuration.
type serveCommand struct {
	Args []string `arg:"" optional:"" help:"Flags of the configuration; fairlead serve --help lists them."`
}

// Run serves until ctx ends.
func (c serveCommand) Run(ctx context.Context, s stdio) (err error) {
	conf := host.Defaults(dataDir(s.env))
	if err := load(&conf, loadOptions(c.Args, s.out)); err != nil {
		return err
	}
	return withTelemetry(ctx, conf, s.err, func(tel *telemetry.Telemetry) error {
		h, err := host.New(ctx, conf, tel, version)
		if err != nil {
			return locked(err, conf.Data)
		}
		return serve(ctx, conf, h, s.err)
	})
}

// withTelemetry sets up telemetry around f.
func withTelemetry(ctx context.Context, conf host.Config, log io.Writer, f func(*telemetry.Telemetry) error) error {
	tel, err := telemetry.Setup(ctx, "fairlead", version, conf.Log, log)
	if err != nil {
		return err
	}
	return errors.Join(f(tel), tel.Shutdown(ctx))
}

// serve runs the host and says where it is.
func serve(ctx context.Context, conf host.Config, h *host.Host, out io.Writer) error {
	on := newListeners(conf)
	peers := h.Peers
	group, ctx := errgroup.WithContext(ctx)
	ended, end := context.WithCancel(ctx)
	group.Go(func() error {
		defer end()
		return h.Run(ctx, on.listening)
	})
	group.Go(func() error {
		select {
		case <-ended.Done():
			return nil
		case <-on.all:
		}
		inside := principal.With(ended, principal.Service("default", "default"))
		box, err := sandboxv1.NewWorkspaceServiceClient(peers).GetCapabilities(inside, &sandboxv1.GetCapabilitiesRequest{})
		if err == nil {
			_, keys := sessionv1.NewKeyServiceClient(peers).ResolveKey(inside, &sessionv1.ResolveKeyRequest{})
			_, err = io.WriteString(out, banner(conf, on.addresses, box, h, entrance(h.Open(ended), keys == nil)))
		}
		if ended.Err() == nil && err != nil { // not told to stop before it had begun
			return fmt.Errorf("print the addresses: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// listeners are the addresses that a server is reached at.
type listeners struct {
	want      int
	addresses map[string]string // by face; complete when all is closed
	all       chan struct{}
}

func newListeners(conf host.Config) *listeners {
	l := &listeners{addresses: map[string]string{}, all: make(chan struct{})}
	l.want = conf.Faces()
	if l.want == 0 {
		close(l.all)
	}
	return l
}

// listening is told of a listener.
func (l *listeners) listening(face, address string) {
	if len(l.addresses) == l.want {
		return
	}
	if l.addresses[face] = address; len(l.addresses) == l.want {
		close(l.all)
	}
}

// banner says where the server is, and what to try.
func banner(conf host.Config, addresses map[string]string, box *sandboxv1.GetCapabilitiesResponse, h *host.Host, entrance string) string {
	var b strings.Builder
	scheme, grpcScheme := "http://", ""
	if conf.TLS.Cert != "" {
		scheme, grpcScheme = "https://", "https://"
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "\nFairlead %s is ready.\n\n", version)
	for _, face := range []struct{ face, name, format string }{
		{"http", "REST", scheme + "%s (specification: /openapi.json, state: /readyz, /metrics)"}, {"public", "gRPC", grpcScheme + "%s"}, {"ops", "ops", "http://%s"},
		{"peer", "peer", "%s (for the other servers on this database, and fairlead nodes)"},
	} {
		if address, ok := addresses[face.face]; ok {
			line(face.name, face.format, address)
		}
	}
	line("data", "%s", h.Data)
	line("store", "%s", store(conf))
	line("sandbox", "level %s, by %s", box.GetLevel(), box.GetDriver())
	line("model", "%s", h.Model)
	if h.Scripted {
		b.WriteString(scriptedNotice("  "))
	}
	b.WriteString(entrance)
	if http, ok := addresses["http"]; ok {
		fmt.Fprintf(&b, "\nTry it:\n\n  curl --json '{\"agent\":\"coder\"}' %s/v1/sessions\n", scheme+http)
	}
	if grpc, ok := addresses["public"]; ok {
		fmt.Fprintf(&b, "  fairlead run --server %s \"What is in the workspace?\"\n", grpcScheme+grpc)
	}
	b.WriteString("\n")
	return b.String()
}

// entrance describes whether calls need a credential, and how to make the first key of a server without keys.
func entrance(open, keyless bool) string {
	switch {
	case open && keyless:
		return "  open      every program on this machine may call it, without a key; `fairlead admin init` makes a key and closes it\n"
	case keyless:
		return "  closed    calls need a key or a token, and no key exists yet: stop the server, run `fairlead admin init` with the same --data or --config, and start again\n"
	}
	return ""
}

// scriptedNotice says that no model is asked, and how to change that.
func scriptedNotice(indent string) string {
	return indent + "The model is a script: it plays prepared answers and calls no provider. For a real one,\n" +
		indent + "set ANTHROPIC_API_KEY or OPENAI_API_KEY and start again (FAIRLEAD_MODEL chooses another model).\n"
}

// store says where sessions are kept, without the password.
func store(conf host.Config) string {
	raw := conf.Session.DatabaseURL.Reveal()
	if raw == "" {
		return "SQLite in the data directory"
	}
	u, err := url.Parse(raw)
	if err != nil { // cannot be: it was validated
		return "Postgres"
	}
	return "Postgres at " + u.Host + u.Path
}
