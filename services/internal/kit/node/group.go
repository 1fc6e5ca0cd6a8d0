package node

import (
	"fmt"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Dialer makes a connection to an address. move changes the address of the
// connection.
type Dialer func(address string) (conn *grpc.ClientConn, move func(address string), err error)

// group is the state of a Set whose nodes are learned at run time.
type group struct {
	dial Dialer

	mu        sync.Mutex // guards what follows
	moves     map[string]func(address string)
	addresses map[string]string // empty: the node was stopped
}

// NewGroup returns a set of one node, which is this program: conn reaches it and remains the caller's. Learn
// adds other nodes.
func NewGroup(self string, conn grpc.ClientConnInterface, dial Dialer) *Set {
	return &Set{
		names: []string{self}, conns: map[string]grpc.ClientConnInterface{self: conn},
		group: &group{dial: dial, moves: map[string]func(string){}, addresses: map[string]string{}},
	}
}

// Learn sets the address of a node of the group. An empty address means that the node was stopped.
func (s *Set) Learn(name, address string) error {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	was, known := g.addresses[name]
	if name == s.names[0] || known && was == address {
		return nil
	}
	if move := g.moves[name]; move != nil && address != "" {
		move(address)
	} else if address != "" {
		conn, move, err := g.dial(address)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		g.moves[name] = move
		s.mu.Lock()
		s.conns[name] = conn
		s.mu.Unlock()
	}
	g.addresses[name] = address
	return nil
}

// ReasonNodeAway is the reason of calls to a node of a group that cannot be reached.
const ReasonNodeAway = "NODE_AWAY"

// explain adds to an error which server did not answer, and what to do. It returns an answer of the node
// itself unchanged.
func (s *Set) explain(name, method string, err error) error {
	if s.group == nil || name == s.names[0] || status.Code(err) != codes.Unavailable || apierr.Reason(err) != "" {
		return err
	}
	return apierr.New(codes.Unavailable, apierr.Domain, ReasonNodeAway, s.group.away(name, method))
}

// subject returns the subject of a sentence about a server that a call does not reach. The call
// needs a session's files there, unless it asks about the server itself.
func subject(name, method string) string {
	switch path.Base(method) {
	case "Check", "GetCapabilities":
		return fmt.Sprintf("the server %q", name)
	}
	return fmt.Sprintf("the session's files are on the server %q, which", name)
}

// away describes a node that a call does not reach.
func (g *group) away(name, method string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	address, known := g.addresses[name]
	what := subject(name, method)
	switch {
	case !known:
		return what + " does not run: start it again with its data directory"
	case address == "":
		return what + " was stopped: start it again with its data directory"
	}
	return fmt.Sprintf("%s cannot be reached at %s: start it again with its data directory; "+
		"if it runs on another machine, set its key peer to an address that this server reaches", what, address)
}
