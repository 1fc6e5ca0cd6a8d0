// Package fairlead is the client of a Fairlead server for Go. It runs turns, follows sessions over lost connections and
// restarts of the server, answers what an agent asks, and runs the tools that belong to the client.
//
// Sessions has the calls of sessions and turns. Every other service of the API is a generated client over Conn:
//
//	agents := sessionv1.NewAgentServiceClient(client.Conn())
//
// The package fold computes from a session's events what its turns, steps and calls are.
package fairlead

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Config says how a Client reaches its server. The zero value is a server without keys, without TLS.
type Config struct {
	// Key is an API key or another bearer credential; empty: the variable FAIRLEAD_API_KEY. Without TLS, everyone on the
	// way can read it.
	Key string
	// TLS is how the client speaks TLS; nil: with the authorities of the system, if the address begins with https://.
	TLS *tls.Config
	// Backoff says how long calls go on when the server cannot be reached; what is zero is as in DefaultBackoff.
	Backoff Backoff
	// Dial has further options of the connection.
	Dial []grpc.DialOption
}

// Client makes calls of a server. It is safe for concurrent use.
type Client struct {
	Sessions sessionv1.SessionServiceClient

	conn    *grpc.ClientConn
	backoff Backoff
}

// maxMessage is the size in bytes of the largest message that the server sends or takes.
const maxMessage = 16 << 20

// Connect returns a client of the gRPC address HOST:PORT, or https://HOST:PORT where the server speaks TLS. It connects
// with the first call. The caller closes the client.
func Connect(address string, c Config) (*Client, error) {
	host, secure := strings.CutPrefix(address, "https://")
	_, port, err := net.SplitHostPort(host)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return nil, fmt.Errorf("the address %q is not of the form HOST:PORT, or https://HOST:PORT for TLS: %w", address, err)
	}
	c.Backoff = c.Backoff.filled()
	transport := insecure.NewCredentials()
	if secure || c.TLS != nil {
		transport = credentials.NewTLS(c.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		// The connection is tried as often as the calls: the first call after the server is back succeeds.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: c.Backoff.First, Multiplier: 2, Jitter: 0.2, MaxDelay: c.Backoff.Most},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}
	if key := strings.TrimSpace(cmp.Or(c.Key, os.Getenv("FAIRLEAD_API_KEY"))); key != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(key)))
	}
	conn, err := grpc.NewClient("dns:///"+host, append(options, c.Dial...)...)
	if err != nil {
		return nil, err
	}
	return &Client{Sessions: sessionv1.NewSessionServiceClient(conn), conn: conn, backoff: c.Backoff}, nil
}

// Conn returns the connection, for the generated clients of further services.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends the connection and the calls on it.
func (c *Client) Close() error { return c.conn.Close() }

// CreateSession makes a session. It goes on while the server cannot be reached, and makes one session.
func (c *Client) CreateSession(ctx context.Context, req *sessionv1.CreateSessionRequest) (*sessionv1.Session, error) {
	req = proto.CloneOf(req)
	req.RequestId = cmp.Or(req.GetRequestId(), newID())
	var resp *sessionv1.CreateSessionResponse
	err := Retry(ctx, c.backoff, func() (err error) {
		resp, err = c.Sessions.CreateSession(ctx, req)
		return err
	})
	return resp.GetSession(), err
}

// Interrupt stops the active turn of a session. The turn's end comes as an event. It returns the turn's name, or "" if
// none was active.
func (c *Client) Interrupt(ctx context.Context, session string) (turn string, err error) {
	req := &sessionv1.InterruptSessionRequest{Name: session, RequestId: newID()}
	err = Retry(ctx, c.backoff, func() error {
		resp, err := c.Sessions.InterruptSession(ctx, req)
		turn = resp.GetTurn()
		return err
	})
	return turn, err
}

// Follow follows the events of a session after a sequence number until ctx ends. The caller closes the Follower.
func (c *Client) Follow(ctx context.Context, session string, after int64) *Follower {
	return StreamEvents(ctx, c.Sessions, session, after, Options{Backoff: c.backoff})
}

// newID returns a new idempotency key.
func newID() string { return strings.ToLower(rand.Text()) }

// bearer is a credential that is sent with each call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: a server on loopback has none.
func (bearer) RequireTransportSecurity() bool { return false }
