// Package node reaches one of several nodes, which are not replicas of each other:
// each has something that the others have not. A Set is one connection to all of
// them; whose turn it is says the context.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

type nameKey struct{}

// With makes calls through a Set go to the node that name tells when they are made.
// An empty name stands for the first node.
func With(ctx context.Context, name func() string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// At makes calls through a Set go to this node.
func At(ctx context.Context, name string) context.Context {
	return With(ctx, func() string { return name })
}

func of(ctx context.Context) string {
	if name, ok := ctx.Value(nameKey{}).(func() string); ok {
		return name()
	}
	return ""
}

// Set is connections to nodes. It is a grpc.ClientConnInterface and safe for
// concurrent use.
type Set struct {
	names []string
	conns map[string]*grpc.ClientConn
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
	s := &Set{names: names, conns: map[string]*grpc.ClientConn{}}
	for i, name := range names {
		conn, err := dial(addresses[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("node %s: %w", name, err), s.Close())
		}
		s.conns[name] = conn
	}
	return s, nil
}

// Names are those of the nodes, in the order of the list; none when the only one has
// no name.
func (s *Set) Names() []string {
	if s.names[0] == "" {
		return nil
	}
	return slices.Clone(s.names)
}

// Close closes all connections.
func (s *Set) Close() error {
	var faults []error
	for _, c := range s.conns {
		faults = append(faults, c.Close())
	}
	return errors.Join(faults...)
}

// ReasonUnknownNode is the reason of calls to a node that is not in the list.
const ReasonUnknownNode = "UNKNOWN_NODE"

func (s *Set) conn(ctx context.Context) (*grpc.ClientConn, error) {
	name := of(ctx)
	if name == "" || s.names[0] == "" {
		name = s.names[0]
	}
	if c := s.conns[name]; c != nil {
		return c, nil
	}
	return nil, apierr.New(codes.Unavailable, apierr.Domain, ReasonUnknownNode,
		fmt.Sprintf("the node %q is not among those that are configured here (%s)", name, strings.Join(s.names, ", ")))
}

// Invoke implements grpc.ClientConnInterface.
func (s *Set) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	c, err := s.conn(ctx)
	if err != nil {
		return err
	}
	return c.Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (s *Set) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c, err := s.conn(ctx)
	if err != nil {
		return nil, err
	}
	return c.NewStream(ctx, desc, method, opts...)
}
