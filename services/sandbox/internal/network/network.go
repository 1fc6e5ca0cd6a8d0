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
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

const (
	// maxMessage is how much is told of why one was refused or failed, in bytes.
	maxMessage = 256
	// settleTime is how long a command's end waits for that of its connections.
	settleTime = 500 * time.Millisecond
)

// Network is a node's. It is a box.Network, and safe for concurrent use.
type Network struct {
	proxy *egress.Proxy
	most  int // requests and tunnels of a command

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
	taken   int             // uses, and those that are open and will be one
	uses    []box.Use
	beyond  box.Use           // all that were refused because there may be no more
	texts   map[string]string // those of uses, which have them in common
	note    func(box.Use)     // is told of each; nil: nobody is
}

// New returns the network that a proxy gives. A command may make so many requests and tunnels:
// each is told.
func New(p *egress.Proxy, most int) *Network {
	return &Network{proxy: p, most: most, running: map[box.Key]map[string]*command{}}
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
		Tenant: s.Tenant, Session: s.Session, Begin: func(exec string) (context.Context, func(egress.Event), error) { return n.begin(k, exec) },
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

// errIdle is for what no command can have asked for.
var errIdle = &egress.RefusalError{Outcome: egress.Aborted, Message: "no command runs in the sandbox"}

// begin notes that a command opened a connection. A name that is not a running
// command's, or none, stands for the one that was started last.
func (n *Network) begin(k box.Key, exec string) (context.Context, func(egress.Event), error) {
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
		return nil, nil, errIdle
	}
	c.open++
	if c.taken < n.most {
		c.taken++
		return c.ctx, func(e egress.Event) { n.end(c, e, c.add) }, nil
	}
	return c.ctx, func(e egress.Event) { n.end(c, e, c.addBeyond) }, &egress.RefusalError{
		Outcome: egress.Limited,
		Message: fmt.Sprintf("the command has made as many requests and connections as one may, which is %d: do the rest in another command, or have the operator raise egress.requests", n.most),
	}
}

// end has a command's connection told.
func (n *Network) end(c *command, e egress.Event, add func(egress.Event) *box.Use) {
	n.mu.Lock()
	made, note := add(e), c.note
	n.mu.Unlock()
	if made != nil && note != nil {
		note(*made)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.open--; c.open == 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// add makes an event one of the command's uses, which it returns. Of TLS that was opened, the
// requests inside are. mu is held.
func (c *command) add(e egress.Event) *box.Use {
	if e.Outcome == egress.Opened {
		c.taken--
		return nil
	}
	u := box.Use{
		Host: c.text(e.Host), Port: int(e.Port), Rule: e.Rule, Outcome: string(e.Outcome), Credential: e.Credential, Message: c.text(shorten(e.Message)),
		Connections: 1, Sent: e.Sent, Received: e.Received, Duration: e.Duration, Started: e.Start.UTC(),
	}
	c.uses = append(c.uses, u)
	return &u
}

// addBeyond adds an event to those for which there was no room, which are one use. mu is held.
func (c *command) addBeyond(e egress.Event) *box.Use {
	u := &c.beyond
	if u.Connections == 0 {
		u.Outcome, u.Started = string(egress.Limited), e.Start.UTC()
	}
	u.Connections++
	u.Sent += e.Sent
	u.Received += e.Received
	u.Duration += e.Duration
	if e.Outcome == egress.Limited {
		u.Message = shorten(e.Message)
	}
	return nil
}

// text is a text that is kept once.
func (c *command) text(s string) string {
	if kept, ok := c.texts[s]; ok {
		return kept
	}
	s = strings.Clone(s) // it may be a part of a request, which is kept with it
	c.texts[s] = s
	return s
}

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
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
	uses := slices.Clone(c.uses)
	if c.beyond.Connections > 0 {
		uses = append(uses, c.beyond)
	}
	return uses
}

// Note implements box.Network.
func (n *Network) Note(k box.Key, callID string, note func(box.Use)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.running[k][callID]; c != nil {
		c.note = note
	}
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
	of[c.ID] = &command{ctx: context.WithoutCancel(ctx), order: o.n.next, texts: map[string]string{}}
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
