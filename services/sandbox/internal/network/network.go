// Package network ties the sandboxes' way out to the commands that use it: it
// serves a sandbox's listener under its workspace's policy, and keeps count of what
// each command did.
package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

const (
	// maxUses is how many connections are told of one command one by one. Those beyond are
	// added to one that is told and had the same destination, rule and outcome.
	maxUses = 128
	// maxDestinations is how many there are of both together: beyond it connections that are
	// like none that is told are added up by outcome.
	maxDestinations = 2 * maxUses
	// settleTime is how long a command's end waits for that of its connections.
	settleTime = 500 * time.Millisecond
)

// Network is a node's. It is a box.Network, and safe for concurrent use.
type Network struct {
	proxy *egress.Proxy

	mu      sync.Mutex // guards what follows
	running map[box.Key]map[string]*command
	next    int64
}

// command is one that runs.
type command struct {
	ctx     context.Context //nolint:containedctx // of its call: spans of its connections hang below
	order   int64           // of its start
	open    int             // requests and tunnels
	settled chan struct{}   // not nil: somebody waits for open to be zero
	uses    []box.Use
	index   map[box.Use]int // the last of each, by what tells uses apart
}

// New returns the network that a proxy gives.
func New(p *egress.Proxy) *Network {
	return &Network{proxy: p, running: map[box.Key]map[string]*command{}}
}

// Encode checks rules and brings them into the form that a workspace keeps. None is
// the empty text.
func (n *Network) Encode(rules []egress.Rule) (string, error) {
	if len(rules) == 0 {
		return "", nil
	}
	if _, err := n.proxy.Policy(rules); err != nil {
		return "", err
	}
	raw, err := json.Marshal(rules)
	return string(raw), err
}

// Serve serves a sandbox's listener until what it returns is closed. A policy that
// the operator allows no longer is an error.
func (n *Network) Serve(s box.Sandbox, l net.Listener) (io.Closer, error) {
	read := n.policy
	if s.Operator {
		read = n.operatorPolicy
	}
	policy, err := read(s.Network)
	if err != nil {
		return nil, err
	}
	k := box.Key{Tenant: s.Tenant, Session: s.Session}
	return n.proxy.Serve(l, policy, egress.Client{
		Tenant: s.Tenant, Session: s.Session, Begin: func(exec string) (context.Context, func(egress.Event)) { return n.begin(k, exec) },
	}), nil
}

// policy reads what Encode wrote.
func (n *Network) policy(kept string) (*egress.Policy, error) {
	var rules []egress.Rule
	if err := json.Unmarshal([]byte(kept), &rules); err != nil {
		return nil, fmt.Errorf("read the workspace's network policy: %w", err)
	}
	policy, err := n.proxy.Policy(rules)
	if err != nil {
		return nil, errors.Join(err, errors.New("set the workspace's network anew"))
	}
	return policy, nil
}

// Environment implements box.Network.
func (n *Network) Environment(callID string) []string { return egress.Environment(callID) }

// begin notes that a command opened a connection. A name that is not a running
// command's, or none, stands for the one that was started last.
func (n *Network) begin(k box.Key, exec string) (context.Context, func(egress.Event)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.running[k][exec]
	if c == nil {
		for _, x := range n.running[k] {
			if c == nil || x.order > c.order {
				c = x
			}
		}
	}
	if c == nil {
		return nil, nil
	}
	c.open++
	return c.ctx, func(e egress.Event) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if e.Outcome != egress.Opened {
			c.add(e)
		}
		if c.open--; c.open == 0 && c.settled != nil {
			close(c.settled)
			c.settled = nil
		}
	}
}

// add adds an event to a command's uses. mu is held.
func (c *command) add(e egress.Event) {
	key := box.Use{Host: e.Host, Port: int(e.Port), Rule: e.Rule, Outcome: string(e.Outcome), Credential: e.Credential}
	i, known := c.index[key]
	if !known && len(c.uses) >= maxDestinations {
		key = box.Use{Outcome: string(e.Outcome)}
		i, known = c.index[key]
	}
	if !known || len(c.uses) < maxUses {
		i = len(c.uses)
		c.index[key] = i
		c.uses = append(c.uses, key)
		c.uses[i].Started = e.Start.UTC()
	}
	u := &c.uses[i]
	u.Connections++
	u.Sent += e.Sent
	u.Received += e.Received
	u.Duration += e.Duration
	if e.Message != "" {
		u.Message = e.Message
	}
}

// Uses implements box.Network. It waits a moment for connections that end with the
// command.
func (n *Network) Uses(k box.Key, callID string) []box.Use {
	n.mu.Lock()
	c := n.running[k][callID]
	if c == nil {
		n.mu.Unlock()
		return nil
	}
	var settled chan struct{}
	if c.open > 0 {
		if c.settled == nil {
			c.settled = make(chan struct{})
		}
		settled = c.settled
	}
	n.mu.Unlock()
	if settled != nil {
		late := time.NewTimer(settleTime)
		defer late.Stop()
		select {
		case <-settled:
		case <-late.C:
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(c.uses)
}

// Observer has the network know of each command, beside another observer.
func (n *Network) Observer(o box.Observer) box.Observer { return observer{o, n} }

type observer struct {
	box.Observer
	n *Network
}

// Started implements box.Observer.
func (o observer) Started(ctx context.Context, c box.Call, argv []string) func(box.Outcome) {
	ended := o.Observer.Started(ctx, c, argv)
	o.n.mu.Lock()
	of := o.n.running[c.Key]
	if of == nil {
		of = map[string]*command{}
		o.n.running[c.Key] = of
	}
	o.n.next++
	of[c.ID] = &command{ctx: context.WithoutCancel(ctx), order: o.n.next, index: map[box.Use]int{}}
	o.n.mu.Unlock()
	return func(out box.Outcome) {
		o.n.forget(c.Key, c.ID)
		ended(out)
	}
}

// forget drops a command that ended, or never started.
func (n *Network) forget(k box.Key, callID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running[k], callID)
	if len(n.running[k]) == 0 {
		delete(n.running, k)
	}
}
