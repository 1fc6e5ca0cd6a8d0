// Package rpctest tests services through the wire, in memory and with the interceptors of the peer face.
package rpctest

import (
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Dial serves the services of register until the test ends, and returns a connection to them. Calls without a
// principal are those of a service, for the default user. The server's log is the test's output. Components that
// know the owners of sessions are asked for them.
func Dial(t testing.TB, register func(grpc.ServiceRegistrar), components ...rpc.Component) *grpc.ClientConn {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	keys := internaltoken.Random()
	pipe, server := rpc.NewPipe(keys, rpc.WithFallback(principal.Service("default", "default"))), rpc.NewPeerServer(log, keys, components...)
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(pipe.Listener()) }()
	t.Cleanup(func() {
		_ = pipe.Conn.Close()
		server.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // it had not begun
			t.Errorf("the in-memory server failed: %v", err)
		}
	})
	return pipe.Conn
}
