// Package network connects the sandboxes' way out with the commands that use it. It serves a sandbox's
// listener under its workspace's policy, and records each command's uses.
package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

const (
	// maxMessage is the maximum size of the reason for a refusal or failure, in bytes.
	maxMessage = 256
	// maxRule is the maximum size of a rule's name, in bytes.
	maxRule = 128
	// settleTime is how long a command's end waits for its connections to end.
	settleTime = 500 * time.Millisecond
	// cutTime is how long it then waits for those that it has cut.
	cutTime = 5 * time.Second
)

// Network is the network of a node. It is a box.Network and safe for concurrent use.
type Network struct {
	proxy *egress.Proxy
	most  int // most requests and tunnels of a command
	log   *slog.Logger

	mu      sync.Mutex // guards what follows, and all commands
	running map[way]map[string]*command
	next    int64
}

// way is the shared state of sandboxes whose commands may name each other.
type way struct {
	box.Key

	network, mounts, user string
	operator              bool
}

func wayOf(s box.Sandbox) way {
	return way{Key: box.Key{Tenant: s.Tenant, Session: s.Session}, network: s.Network, mounts: s.Mounts, user: s.User, operator: s.Operator}
}

// New returns the network of a proxy. A command may make most requests and tunnels, each of which is
// reported.
func New(p *egress.Proxy, most int, log *slog.Logger) *Network {
	return &Network{proxy: p, most: most, log: log, running: map[way]map[string]*command{}}
}

// Encode checks rules and returns the form that a workspace stores; without rules it is empty.
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

// Serve serves a sandbox's listener until the returned value, which commands of the sandbox Enter, is
// closed. A policy that the operator no longer allows is an error.
func (n *Network) Serve(s box.Sandbox, l net.Listener) (io.Closer, error) {
	read := n.policy
	if s.Operator {
		read = n.operatorPolicy
	}
	policy, err := read(s.Network)
	if err != nil {
		return nil, err
	}
	out := &outlet{way: wayOf(s)}
	out.server = n.proxy.Serve(l, policy, egress.Client{
		Tenant: s.Tenant, Session: s.Session, Begin: func(exec string, asked bool) (egress.Use, error) { return n.begin(out, exec, asked) },
	})
	return out, nil
}

// outlet is one sandbox's way out.
type outlet struct {
	way    way
	server *egress.Server
	strays strays // guarded by the network's mu
}

// Close implements io.Closer. It still counts earlier connections: they may belong to a command whose
// sandbox crashed.
func (o *outlet) Close() error {
	o.server.CatchUp()
	return o.server.Close()
}

// policy decodes the output of Encode.
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

// begin records that a command opened a connection, or made a request over one. A missing or unknown name
// stands for the command that was started last in the sandbox.
func (n *Network) begin(at *outlet, exec string, asked bool) (egress.Use, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.find(at, exec)
	if c == nil {
		return n.stray(at, n.running[at.way][exec], asked)
	}
	c.begun++
	u := &use{c: c, number: c.begun}
	var enough error
	switch {
	case !asked:
		u.add = c.addSilent
	case c.taken < n.most:
		c.taken++
		u.add = c.add
	default:
		u.add, enough = c.addBeyond, n.enough()
	}
	c.open[u] = struct{}{}
	return egress.Use{Exec: c.id, Context: c.ctx, Dialed: u.dialed, Ended: u.ended}, enough
}

// find returns the command that a use is counted for, or nil. A command whose uses are final does not
// count. A command that is ending can have begun no unnamed use, unless it is the only candidate. mu is
// held.
func (n *Network) find(at *outlet, exec string) *command {
	running := n.running[at.way]
	if c := running[exec]; c != nil && !c.closed {
		return c
	}
	var last *command
	for _, c := range running {
		if c.at != at || c.closed {
			continue
		}
		if last == nil || !c.ending && last.ending || c.ending == last.ending && c.order > last.order {
			last = c
		}
	}
	return last
}

// enough returns the refusal for a use beyond the maximum number.
func (n *Network) enough() *egress.RefusalError {
	return &egress.RefusalError{
		Outcome: egress.Limited,
		Message: fmt.Sprintf("the command has made as many requests and connections as one may, which is %d: do the rest in another command, or have the operator raise egress.requests", n.most),
	}
}
