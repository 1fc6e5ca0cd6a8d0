// Package rpc serves services and calls them: one Serve for every program, with any set of services, and one
// chain of interceptors on every face.
//
// A service has two faces. The public face serves clients, by their credentials. The peer face serves the other
// services, with internal RPCs besides the public ones, by their internal tokens. In a program that has all services, peers meet in
// memory (Local) and use exactly the same code.
package rpc

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
)

// Component is a service, ready to be served.
type Component interface {
	// RegisterPublic registers the RPCs that clients may call. It is called once for each face.
	RegisterPublic(s grpc.ServiceRegistrar)
	// RegisterPeer registers the RPCs that only other services may call.
	RegisterPeer(s grpc.ServiceRegistrar)
	// Run is the component's background work. It returns when ctx ends, or with the error that ends the program.
	// A component without background work may return nil at once.
	Run(ctx context.Context) error
	// Close frees the resources of New. It is called once, after Run has returned and when no RPC runs
	// any more.
	Close() error
}

// HTTPComponent may be implemented by a Component. Its Handler is served on Config.HTTP and drains before the
// RPCs.
//
// A handler that streams must end its streams when Draining(r.Context()) is closed. Other requests have until
// half of the grace, then their contexts end.
type HTTPComponent interface {
	Handler() http.Handler
	// AllowedOrigins returns the origins of pages on other hosts that may call the handler.
	AllowedOrigins() []string
}

// ReadyChecker may be implemented by a Component: /readyz and the health service report ready when all checks
// return nil. Ready is called often and from several goroutines; ctx limits it to a second or two.
type ReadyChecker interface {
	Ready(ctx context.Context) error
}

// NotReadyError is an error of Ready for clients: /readyz answers with its lines, so they hold no secrets.
type NotReadyError []string

func (n NotReadyError) Error() string { return strings.Join(n, "; ") }

// Noter may be implemented by a Component that is ready and lacks something: /readyz adds its lines to the answer, so
// they hold no secrets.
type Noter interface {
	Notes() []string
}

// Drainer may be implemented by a Component whose background work takes time to reach a good place to stop.
// Drain is called once, when the server begins to stop, and returns when the work has paused; ctx ends before
// the grace does. Peers are served until all have returned, because unfinished work may need them, in this
// process or in others.
type Drainer interface{ Drain(ctx context.Context) }

type drainingKey struct{}

// Draining returns a channel that is closed when the server begins to stop, for the contexts of HTTP
// requests; in other contexts it is never closed. HTTP handlers that stream must end then. Contexts of
// streaming RPCs end by themselves, and the context of Run when no RPC runs any more.
func Draining(ctx context.Context) <-chan struct{} {
	ch, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return ch
}
