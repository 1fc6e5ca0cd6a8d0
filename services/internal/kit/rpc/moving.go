package rpc

import (
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// DialMoving is Dial for a service whose address changes while the connection is in use. Each call of move
// sends further calls to another address; calls at the old one end with UNAVAILABLE.
func DialMoving(addr string, opts ...DialOption) (conn *grpc.ClientConn, move func(addr string), err error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, nil, fmt.Errorf("dial %q: it is not an address such as 127.0.0.1:9190", addr)
	}
	r := manual.NewBuilderWithScheme("moving")
	r.InitialState(at(addr))
	conn, err = dial("moving:///service", append(opts, WithDialOptions(grpc.WithResolvers(r)))...)
	if err != nil {
		return nil, nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	return conn, func(addr string) { r.UpdateState(at(addr)) }, nil
}

func at(addr string) resolver.State {
	return resolver.State{Addresses: []resolver.Address{{Addr: addr, ServerName: addr}}}
}
