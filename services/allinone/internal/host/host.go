// Package host runs the four services in one process. They call each other in
// memory, with the same code as over the network.
package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/tools"
)

// Config is the configuration of all four services in one process.
type Config struct {
	HTTP             string        `key:"http" help:"address of REST and the event streams, with /healthz, /readyz and /metrics"`
	GRPC             string        `key:"grpc" help:"address of the public gRPC services"`
	Peer             string        `key:"peer" help:"with Postgres: address at which the other servers on the same database reach this one; it must be loopback, or an address that they reach, with allow-non-loopback"`
	Ops              string        `key:"ops" help:"separate address of /healthz, /readyz and /metrics; empty: they are beside REST"`
	AllowNonLoopback bool          `key:"allow-non-loopback" help:"allow listeners that other machines can reach; those for clients then need a credential"`
	AllowedHosts     []string      `key:"allowed-hosts" help:"names by which requests may call the HTTP listeners, besides localhost and any IP address, such as api.example.com or *.example.com; * allows every name"`
	TrustedProxies   []string      `key:"trusted-proxies" help:"networks of the proxies in front of the listeners for clients, such as 10.0.0.0/8: the client is then the address that they name in X-Forwarded-For or Forwarded, for limits and the audit log. Name only proxies that set the header themselves"`
	Grace            time.Duration `key:"grace" help:"how long running requests may take to end when the program stops"`
	Data             string        `key:"data" help:"the data directory"`

	Log     telemetry.Config   `key:"log"`
	Auth    auth.Config        `key:"auth"`
	TLS     certificate.Config `key:"tls"`
	Session session.Config     `key:"session"`
	Tools   tools.Config       `key:"tools"`
	Sandbox sandbox.Config     `key:"sandbox"`
	Gateway gateway.Config     `key:"gateway"`
}

// inData stands for the data directory in the paths of the services, so that
// they follow it wherever it is said to be, unless they are set themselves.
const inData = "{data}"

// Defaults returns the default configuration. dataDir is the user's.
func Defaults(dataDir string) Config {
	c := Config{
		HTTP: "127.0.0.1:8080", GRPC: "127.0.0.1:9090", Peer: "127.0.0.1:0", Grace: rpc.DefaultGrace, Data: dataDir, Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(),
		Session: session.Defaults(), Tools: tools.Defaults(), Sandbox: sandbox.Defaults(), Gateway: gateway.DefaultConfig(),
	}
	c.Log.Format = "text"
	c.Session.SandboxLostAfter = lostAfter
	c.Session.Models.Section = "session"
	c.Session.Data, c.Tools.Data, c.Sandbox.Data = inData, inData, inData+"/sandbox"
	return c
}

// lostAfter is long enough for a server that is stopped for an upgrade: with its disk it
// would lose the only copy of its workspaces.
const lostAfter = 10 * time.Minute

// place puts the services' data where they say, or below the one directory.
func (c *Config) place() error {
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return fmt.Errorf("the data directory: %w", err)
	}
	c.Data = data
	c.shareWait()
	for _, dir := range []*string{&c.Session.Data, &c.Tools.Data, &c.Sandbox.Data} {
		if rest, ok := strings.CutPrefix(*dir, inData); ok {
			*dir = filepath.Join(data, rest)
		}
	}
	return nil
}

// shareWait makes a database-wait that only one service has hold for both: one
// database serves both here.
func (c *Config) shareWait() {
	switch usual := tools.Defaults().DatabaseWait; usual {
	case c.Tools.DatabaseWait:
		c.Tools.DatabaseWait = c.Session.DatabaseWait
	case c.Session.DatabaseWait:
		c.Session.DatabaseWait = c.Tools.DatabaseWait
	}
}

// Scripted reports whether a model, as `provider:model`, plays a script and
// calls no provider.
func (c Config) Scripted(model string) bool {
	provider, _, _ := strings.Cut(model, ":")
	if p, ok := c.Session.Models.Providers[provider]; ok && p.Kind != "" {
		return p.Kind == kindScripted
	}
	return provider == kindScripted
}

// kindScripted is the kind of providers, and the name of the one, that play
// scripts.
const kindScripted = "scripted"

// Validate checks settings that concern several services.
func (c Config) Validate() error {
	var faults []error
	if c.Data == "" {
		faults = append(faults, errors.New("data: is empty; set the data directory"))
	}
	if c.shared() {
		faults = append(faults, c.validateShared())
	}
	return errors.Join(append(faults, c.server().Validate())...)
}

// Faces returns the number of listeners.
func (c Config) Faces() int {
	n := 0
	for _, address := range []string{c.GRPC, c.HTTP, c.Ops, c.server().Peer} {
		if address != "" {
			n++
		}
	}
	return n
}

func (c Config) server() rpc.Config {
	peer := c.Peer
	if !c.shared() {
		peer = ""
	}
	return rpc.Config{
		Public: c.GRPC, PublicKey: "grpc", HTTP: c.HTTP, Ops: c.Ops, Peer: peer,
		AllowNonLoopback: c.AllowNonLoopback, AllowedHosts: c.AllowedHosts, TrustedProxies: c.TrustedProxies, Grace: c.Grace, TLS: c.TLS,
	}
}

// Host is the four services, ready to run.
type Host struct {
	// Peers reaches the services in memory. Calls wait until Run serves.
	Peers grpc.ClientConnInterface
	// Data is the directory of everything, absolute.
	Data string
	// Model is the default agent's, as `provider:model`.
	Model string
	// Scripted says that the model plays a script and calls no provider.
	Scripted bool

	config     Config
	tel        *telemetry.Telemetry
	local      *rpc.Local
	auth       *auth.Authenticator
	shared     *shared // nil: the database is this server's alone
	components []rpc.Component
}

// New builds the services. The caller must call Run or Close.
func New(ctx context.Context, c Config, tel *telemetry.Telemetry, version string) (h *Host, err error) {
	if err := c.place(); err != nil {
		return nil, err
	}
	keys, err := c.Keys(ctx, tel.Log)
	if err != nil {
		return nil, err
	}
	files, err := certificate.Open(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	connect := connector{rpc.WithKeys(keys), rpc.WithTLS(files)}
	h = &Host{Data: c.Data, config: c, tel: tel, local: rpc.NewLocal(keys)}
	h.Peers = rpc.As(h.local.Conn, principal.Default())
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
			h = nil
		}
	}()
	deps := session.Deps{Sandbox: h.local.Conn, Tools: h.local.Conn, Log: tel.Log.With("component", "session"), Version: version}
	if c.shared() {
		if h.shared, err = c.share(ctx, h.local.Conn, connect); err != nil {
			return h, err
		}
		deps.Sandbox, deps.Server = h.shared.nodes, h.shared.server()
	}
	box, err := sandbox.New(ctx, c.Sandbox, sandbox.Deps{Log: tel.Log.With("component", "sandbox")})
	if err != nil {
		return h, err
	}
	h.components = append(h.components, box)
	tool, err := tools.New(ctx, c.Tools, tools.Deps{Sandbox: deps.Sandbox, Dial: connect.dial, Log: tel.Log.With("component", "tools"), Version: version})
	if err != nil {
		return h, err
	}
	h.components = append(h.components, tool)
	sess, err := session.New(ctx, c.Session, deps)
	if err != nil {
		return h, err
	}
	h.Model = sess.DefaultModel()
	h.Scripted = c.Scripted(h.Model)
	h.components = append(h.components, sess)
	faults, err := tool.CheckAgents(ctx, sess.AgentNeeds())
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("session.agents: %s", strings.Join(faults, "; "))
	}
	if err != nil {
		return h, err
	}
	if h.auth, err = auth.New(c.Auth, sess.Keys(), c.server().Reachable(), tel.Log); err != nil {
		return h, err
	}
	gw, err := gateway.New(ctx, c.Gateway, gateway.Deps{Session: h.local.Conn, Tools: h.local.Conn, Auth: h.auth, Secret: keys.Derive("mcp"), Version: version, Log: tel.Log.With("component", "gateway")})
	if err != nil {
		return h, err
	}
	h.components = append(h.components, gw)
	return h, forget(c.Data)
}

// Open reports whether calls without a credential are allowed.
func (h *Host) Open(ctx context.Context) bool {
	_, err := h.auth.Authenticate(ctx, "")
	return err == nil
}

// Run serves until ctx ends. listening, if not nil, is told the addresses.
func (h *Host) Run(ctx context.Context, listening func(face, address string)) error {
	c := h.config.server()
	c.Keys, c.Auth = h.local.Keys, h.auth
	noted := note{data: h.Data, log: h.tel.Log, addresses: map[string]string{}}
	c.OnListen = func(face, address string) {
		noted.listening(face, address)
		if listening != nil {
			listening(face, address)
		}
	}
	components, local, shared := h.components, h.local, h.shared
	h.components, h.local, h.shared = nil, nil, nil
	if shared == nil {
		return rpc.Serve(ctx, c, h.tel, local, components...)
	}
	c.PeerListener = shared.listener
	return errors.Join(rpc.Serve(ctx, c, h.tel, local, components...), shared.nodes.Close())
}

// Close frees the resources of New, if Run was never called.
func (h *Host) Close() error {
	var errs []error
	for i := len(h.components) - 1; i >= 0; i-- {
		errs = append(errs, h.components[i].Close())
	}
	h.components = nil
	if h.shared != nil {
		errs = append(errs, h.shared.listener.Close(), h.shared.nodes.Close())
		h.shared = nil
	}
	if h.local != nil {
		errs = append(errs, h.local.Close())
		h.local = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the services: %w", err)
	}
	return nil
}
