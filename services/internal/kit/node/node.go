// Package node reaches one of several nodes, which are not replicas: each has data
// that the others lack. A Set is one connection to all of them; the context of a
// call selects the node.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

type nameKey struct{}

// At directs calls through a Set to a node. An empty name means the first one. Packages that
// make requests call it beside the request, which names the node; no other code puts a node
// into a context.
func At(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

func of(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}

// Set has the connections to nodes. It is a grpc.ClientConnInterface and safe
// for concurrent use.
type Set struct {
	names []string // in the order of the list; an empty name means the first
	group *group   // of nodes that are learned at run time; nil: only those of the list

	mu    sync.RWMutex // guards conns, which only a group adds to
	conns map[string]grpc.ClientConnInterface
}

var _ grpc.ClientConnInterface = (*Set)(nil)

// Parse reads a list of nodes, each as name=address, and returns their names and
// addresses. A single one needs no name (=address).
func Parse(list []string) (names, addresses []string, err error) {
	for _, entry := range list {
		name, address, ok := strings.Cut(strings.TrimSpace(entry), "=")
		switch {
		case !ok || name == "" && len(list) > 1 || address == "":
			return nil, nil, fmt.Errorf("node %q: want name=address", entry)
		case slices.Contains(names, name):
			return nil, nil, fmt.Errorf("node %q is listed twice", name)
		}
		names, addresses = append(names, name), append(addresses, address)
	}
	return names, addresses, nil
}

// Dial makes connections to a list of nodes. The caller closes the set.
func Dial(list []string, dial func(address string) (*grpc.ClientConn, error)) (*Set, error) {
	names, addresses, err := Parse(list)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there are no nodes")
	}
	s := &Set{names: names, conns: map[string]grpc.ClientConnInterface{}}
	for i, name := range names {
		conn, err := dial(addresses[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("node %s: %w", name, err), s.Close())
		}
		s.conns[name] = conn
	}
	return s, nil
}

// Names returns the names of the nodes, in the order of the list; none when the only
// one has no name.
func (s *Set) Names() []string {
	if s.names[0] == "" {
		return nil
	}
	return slices.Clone(s.names)
}

// Close closes all connections of the set.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var faults []error
	for name, c := range s.conns {
		if own, ok := c.(io.Closer); ok && (s.group == nil || name != s.names[0]) {
			faults = append(faults, own.Close())
		}
	}
	return errors.Join(faults...)
}

// ReasonUnknownNode is the reason of calls to a node that is not in the list.
const ReasonUnknownNode = "UNKNOWN_NODE"

// conn returns the connection for a call, and the name of its node.
func (s *Set) conn(ctx context.Context, method string) (grpc.ClientConnInterface, string, error) {
	name := of(ctx)
	if name == "" || s.names[0] == "" {
		name = s.names[0]
	}
	s.mu.RLock()
	c := s.conns[name]
	s.mu.RUnlock()
	switch {
	case c != nil:
		return c, name, nil
	case s.group != nil:
		return nil, name, apierr.New(codes.Unavailable, apierr.Domain, ReasonUnknownNode, s.group.away(name, method))
	}
	return nil, name, apierr.New(codes.Unavailable, apierr.Domain, ReasonUnknownNode,
		fmt.Sprintf("the node %q is not configured here (%s)", name, strings.Join(s.names, ", ")))
}

// Invoke implements grpc.ClientConnInterface.
func (s *Set) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	c, name, err := s.conn(ctx, method)
	if err != nil {
		return err
	}
	return s.explain(name, method, c.Invoke(ctx, method, args, reply, opts...))
}

// NewStream implements grpc.ClientConnInterface.
func (s *Set) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c, name, err := s.conn(ctx, method)
	if err != nil {
		return nil, err
	}
	stream, err := c.NewStream(ctx, desc, method, opts...)
	return stream, s.explain(name, method, err)
}
