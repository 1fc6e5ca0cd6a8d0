package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
)

// Config configures a program's listeners. An empty address means no such listener; port 0 means any free
// port.
type Config struct {
	Public           string        `key:"public" help:"address of the public gRPC listener, for clients; empty for none"`
	Peer             string        `key:"peer" help:"address of the internal gRPC listener, for the other services; empty for none"`
	HTTP             string        `key:"http" help:"address of the REST and web listener; empty for none"`
	Ops              string        `key:"ops" help:"address of /healthz, /readyz and /metrics; empty puts them on the http listener"`
	AllowNonLoopback bool          `key:"allow-non-loopback" help:"allow listeners that other machines can reach; those for clients then need a credential"`
	AllowedHosts     []string      `key:"allowed-hosts" help:"names by which requests may call the HTTP listeners, besides localhost and any IP address, such as api.example.com or *.example.com; * allows every name"`
	TrustedProxies   []string      `key:"trusted-proxies" help:"networks of the proxies in front of the listeners for clients, such as 10.0.0.0/8: the client is then the address that they name in X-Forwarded-For or Forwarded, for limits and the audit log. Name only proxies that set the header themselves"`
	Grace            time.Duration `key:"grace" help:"how long running requests may take to end when the program stops"`

	TLS certificate.Config `key:"tls"`

	// Auth knows the callers of Public; a program with a public listener needs it.
	Auth *auth.Authenticator
	// Keys verify the tokens of calls to Peer; a program with a peer listener needs them.
	Keys *internaltoken.Keys
	// PublicKey is the key of Public in the program's configuration, for messages; empty means public.
	PublicKey string
	// PeerListener is the listener of Peer if its address had to be known before Serve, which closes it.
	PeerListener net.Listener
	// OnListen is called with the address of each face before anything is served: "public", "peer", "http",
	// "ops".
	OnListen func(face, address string)
}

// DefaultGrace is the grace of DefaultConfig.
const DefaultGrace = 10 * time.Second

// DefaultConfig returns a Config without listeners.
func DefaultConfig() Config { return Config{Grace: DefaultGrace} }

// Validate checks every address and the grace.
func (c Config) Validate() error {
	var faults []error
	for _, f := range c.faces() {
		if f.address == "" {
			continue
		}
		if err := c.checkAddress(f.address); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.key, err))
		}
	}
	for _, host := range c.AllowedHosts {
		if err := checkHost(host); err != nil {
			faults = append(faults, fmt.Errorf("allowed-hosts: %w", err))
		}
	}
	if _, err := parseProxies(c.TrustedProxies); err != nil {
		faults = append(faults, fmt.Errorf("trusted-proxies: %w", err))
	}
	if c.Grace <= 0 {
		faults = append(faults, fmt.Errorf("grace: %s is not a positive duration", c.Grace))
	}
	return errors.Join(faults...)
}

type listenerAddress struct{ face, address, key string }

func (c Config) faces() []listenerAddress {
	return []listenerAddress{{"public", c.Public, cmp.Or(c.PublicKey, "public")}, {"peer", c.Peer, "peer"}, {"http", c.HTTP, "http"}, {"ops", c.Ops, "ops"}}
}

// Reachable reports whether clients on other machines can call.
func (c Config) Reachable() bool {
	for _, address := range []string{c.Public, c.HTTP} {
		if host, _, err := net.SplitHostPort(address); err == nil && !isLoopback(host) {
			return true
		}
	}
	return false
}

func (c Config) checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address such as 127.0.0.1:8080", address)
	}
	if !c.AllowNonLoopback && !isLoopback(host) {
		return fmt.Errorf("%q can be reached from other machines; "+
			"listen on 127.0.0.1, or set allow-non-loopback if that is meant: clients then need a credential", address)
	}
	return nil
}

// isLoopback treats names other than localhost as reachable: their addresses may change.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
