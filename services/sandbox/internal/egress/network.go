package egress

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
)

const (
	// maxUseMessage is the maximum size of the reason for a refusal or failure, in bytes.
	maxUseMessage = 256
	// maxUseRule is the maximum size of a rule's name, in bytes.
	maxUseRule = 128
	// settleTime is how long a command's end waits for its connections to end.
	settleTime = 500 * time.Millisecond
	// cutTime is how long it then waits for those that it has cut.
	cutTime = 5 * time.Second
)

// Network serves the sandboxes' ways out under their workspaces' policies, and records each command's uses.
// It is a box.Network and safe for concurrent use.
type Network struct {
	proxy *Proxy
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

// NewNetwork returns the network of a proxy. A command may make most requests and tunnels, each of which is
// reported.
func NewNetwork(p *Proxy, most int, log *slog.Logger) *Network {
	return &Network{proxy: p, most: most, log: log, running: map[way]map[string]*command{}}
}

// Encode checks rules and returns the form that a workspace stores; without rules it is empty.
func (n *Network) Encode(rules []Rule) (string, error) {
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
	out.Server = n.proxy.Serve(l, policy, Client{
		Tenant: s.Tenant, Session: s.Session, Begin: func(exec string) (Use, error) { return n.begin(out, exec) },
	})
	return out, nil
}

// outlet is one sandbox's way out.
type outlet struct {
	*Server
	way way
}

// policy decodes the output of Encode.
func (n *Network) policy(kept string) (*Policy, error) {
	var rules []Rule
	if err := json.Unmarshal([]byte(kept), &rules); err != nil {
		return nil, fmt.Errorf("read the workspace's network policy: %w", err)
	}
	policy, err := n.proxy.Policy(rules)
	if err != nil {
		return nil, errors.Join(err, errors.New("set the workspace's network again"))
	}
	return policy, nil
}

// Environment implements box.Network.
func (n *Network) Environment(callID string) []string { return Environment(callID) }

// begin counts a request or a tunnel for a command. Without a command it is refused, and its span and the
// log name the session.
func (n *Network) begin(at *outlet, exec string) (Use, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.find(at, exec)
	if c == nil {
		n.log.Warn("refused a request of a sandbox in which no command runs", "tenant", at.way.Tenant, "session", at.way.Session, "names", exec)
		return Use{}, &RefusalError{Outcome: Aborted, Message: "no command runs in the sandbox"}
	}
	add, enough := c.add, error(nil)
	if c.taken < n.most {
		c.taken++
	} else {
		add, enough = c.addBeyond, n.enough()
	}
	c.open++
	return Use{Exec: c.id, Context: c.ctx, Ended: func(e Event) { c.ended(add, e) }}, enough
}

// find returns the command that a use is counted for, or nil: the named one, else the last that was started
// in the sandbox. mu is held.
func (n *Network) find(at *outlet, exec string) *command {
	running := n.running[at.way]
	if c := running[exec]; c != nil && !c.closed {
		return c
	}
	var last *command
	for _, c := range running {
		if c.at == at && !c.closed && (last == nil || c.order > last.order) {
			last = c
		}
	}
	return last
}

// enough returns the refusal for a use beyond the maximum number.
func (n *Network) enough() *RefusalError {
	return &RefusalError{
		Outcome: Limited,
		Message: fmt.Sprintf("the command has reached the limit of %d requests and connections: do the rest in another command, or ask the operator to raise egress.requests", n.most),
	}
}
