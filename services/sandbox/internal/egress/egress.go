// Package egress lets sandboxes reach the outside by name and by rule. A sandbox has no network, only a
// listener in its own network namespace. A forward proxy outside serves the listener's connections.
//
// The proxy promises:
//
//   - It decides by the address of the request (the URI, or the target of CONNECT), never by a Host header. A
//     request leaves only if a rule of the workspace's policy and one of the operator's ceiling allow it.
//   - It resolves names itself and dials exactly the address that it checked. Private, local and other special
//     addresses, and the node's own, need a rule that names their range. Each connection is checked, so
//     redirects, and names that change their address, are checked too.
//   - It writes each request anew, which prevents request smuggling.
//   - It adds credentials only at the destinations that the operator configured, and only over TLS. They appear
//     in no event, span, log or error.
//   - Every connection is limited in time, idleness and bytes. Every request and tunnel is reported to an
//     observer, including refused ones.
//
// The proxy knows neither workspaces nor commands: a Server serves one listener under one policy. A Network
// connects the servers with the workspaces' policies and the commands that use them.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

var (
	// ErrPolicy is the cause of every error of Policy: the rules are not valid.
	ErrPolicy = errors.New("the network policy is not valid")
	// ErrCeiling means that the operator allows less than a rule asks for.
	ErrCeiling = errors.New("above what the operator allows (sandbox.egress.ceiling)")
	// ErrCredential means that the credential does not exist or is not for this host.
	ErrCredential = errors.New("no such credential of the operator (sandbox.egress.credentials)")
)

// Limits of one sandbox.
type Limits struct {
	Connections int           // at once
	Idle        time.Duration // after which a connection without bytes is closed
	Total       time.Duration // after which any connection is closed
	Bytes       int64         // of one connection, both directions added up
}

// Options of a Proxy.
type Options struct {
	Ceiling     []Rule // the most that any policy may allow; empty: nothing
	Credentials map[string]Credential
	Authority   *Authority // issues the certificates of intercepted hosts
	Limits      Limits
	Roots       *x509.CertPool // trusted outside; nil: the machine's
	// Resolve finds the addresses of a name; nil: the machine's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Log     *slog.Logger
}

// Proxy is the shared state of the servers of one node. It is safe for concurrent use.
type Proxy struct {
	o           Options
	ceiling     []*rule
	credentials map[string]*credential
	own         *ownAddresses
	observer    *observer
}

// New checks the operator's configuration and reports all its faults.
func New(o Options) (*Proxy, error) {
	ceiling, err := compileCeiling(o.Ceiling)
	if err != nil {
		err = fmt.Errorf("ceiling: %w", err)
	}
	credentials, bad := compileCredentials(o.Credentials)
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	if o.Resolve == nil {
		o.Resolve = resolve
	}
	told, err := newObserver()
	if err != nil {
		return nil, err
	}
	return &Proxy{o: o, ceiling: ceiling, credentials: credentials, own: &ownAddresses{}, observer: told}, nil
}

// Policy checks the rules of a workspace. The error wraps ErrPolicy and reports all faults. Without rules
// nothing leaves.
func (p *Proxy) Policy(rules []Rule) (*Policy, error) {
	policy, err := newPolicy(rules, p.ceiling, p.credentials)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return policy, nil
}
