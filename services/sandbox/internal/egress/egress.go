// Package egress lets sandboxes out, by name and by rule. A sandbox has no network:
// all it has is a listener in its own network namespace, whose connections are
// served out here by a forward proxy.
//
// The proxy promises:
//
//   - It decides by the address of the request (the URI, or what CONNECT names),
//     never by a Host header, and lets nothing out that no rule names, in the
//     workspace's policy and in the operator's ceiling.
//   - It resolves names itself and dials the very address that it checked. Private,
//     local and otherwise special addresses, and those of the node itself, need a
//     rule that names their range. This holds for each connection, so redirects and
//     names that change their address find the same door.
//   - It passes on no request as it came: each is written anew, so there is nothing
//     to smuggle.
//   - Credentials are put in here, at the destinations the operator has said, over
//     TLS alone. They are in no event, span, log or error.
//   - Every connection is bounded in time, idleness and bytes, and every request and
//     tunnel is told to an observer, the refused ones too.
//
// It knows neither workspaces nor commands: a Server serves one listener under one
// policy.
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
	// ErrCeiling says that the operator allows less than a rule asks for.
	ErrCeiling = errors.New("above what the operator allows (sandbox.egress.ceiling)")
	// ErrCredential says that there is no such credential, or not for this host.
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
	Ceiling     []Rule // what any policy may allow; empty: nothing
	Credentials map[string]Credential
	Authority   *Authority // issues the certificates of intercepted hosts
	Limits      Limits
	Roots       *x509.CertPool // trusted outside; nil: the machine's
	// Resolve finds the addresses of a name; nil: as the machine does.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Log     *slog.Logger
}

// Proxy is what the servers of one node share. It is safe for concurrent use.
type Proxy struct {
	o           Options
	ceiling     []*rule
	credentials map[string]*credential
	own         *ownAddresses
	observer    *observer
}

// New checks the operator's configuration. Every fault is told.
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

// Policy checks the rules of a workspace. The error wraps ErrPolicy and tells every
// fault. Without rules nothing leaves.
func (p *Proxy) Policy(rules []Rule) (*Policy, error) {
	policy, err := newPolicy(rules, p.ceiling, p.credentials)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return policy, nil
}
