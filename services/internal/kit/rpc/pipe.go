package rpc

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
)

// Pipe is an in-memory listener with a connection to it, for tests of the wire and measurements of it.
type Pipe struct {
	// Conn reaches what is served on the listener.
	Conn *grpc.ClientConn

	listener *bufconn.Listener
}

// localBuffer is how many bytes may be in transit between the two ends.
const localBuffer = 1 << 20

// NewPipe returns a pipe, whose calls carry tokens of these keys. They wait until a server serves the listener.
func NewPipe(keys *internaltoken.Keys, opts ...DialOption) *Pipe {
	l := &Pipe{listener: bufconn.Listen(localBuffer)}
	opts = append([]DialOption{
		WithKeys(keys),
		WithDialOptions(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.listener.DialContext(ctx) })),
	}, opts...)
	conn, err := dial("passthrough:///pipe", opts...)
	if err != nil { // the target and our options are constants, so only an option of the caller can be wrong
		panic(fmt.Sprintf("rpc: in-memory connection: %v", err))
	}
	l.Conn = conn
	return l
}

// Listener returns the end to serve on. Its server closes it.
func (l *Pipe) Listener() net.Listener { return l.listener }
