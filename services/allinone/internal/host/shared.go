package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session"
)

// shared is the additional state of a server that shares its database with others. Its
// workspaces are on its own disk, so it is a named sandbox node, which the others reach
// at its peer listener.
type shared struct {
	name     string
	listener net.Listener
	address  string // of the listener, for the others
	nodes    *node.Set
	connect  connector
}

// shared reports whether other servers can use the same database.
func (c Config) shared() bool { return c.Session.DatabaseURL.Reveal() != "" }

// validateShared checks what servers on one database need.
func (c Config) validateShared() error {
	var faults []error
	if c.Tools.DatabaseURL.Reveal() == "" {
		faults = append(faults, errors.New("tools.database-url: is missing; other servers on session.database-url need the journal of the calls that run here (FAIRLEAD_DATABASE_URL sets both)"))
	}
	if c.TLS.Cert != "" && c.TLS.CA == "" {
		faults = append(faults, errors.New("tls.ca: is missing; the servers on one Postgres call each other over TLS, and check each other's certificate by it"))
	}
	switch host, port, err := net.SplitHostPort(c.Peer); {
	case c.Peer == "":
		faults = append(faults, errors.New("peer: is empty; other servers on the same Postgres reach the files here at this address"))
	case err == nil && unspecified(host) && c.Tools.Advertise == "":
		faults = append(faults, fmt.Errorf("peer: other servers cannot reach %q; set the address of an interface, or set tools.advertise to the address at which they reach port %s", c.Peer, port))
	}
	return errors.Join(faults...)
}

// Keys returns the keys of internal tokens: the configured ones, those that servers on one
// database share, or new ones for this process.
func (c Config) Keys(ctx context.Context, log *slog.Logger) (*internaltoken.Keys, error) {
	keys, err := c.Auth.Keys()
	switch {
	case err == nil || !errors.Is(err, auth.ErrNoKeys):
		return keys, err
	case !c.shared():
		return internaltoken.Random(), nil
	}
	seed, err := session.InternalKey(ctx, c.Session, log)
	if err != nil {
		return nil, err
	}
	return internaltoken.New(seed)
}

// connector connects to the peer listeners of other servers.
type connector []rpc.DialOption

func (c connector) dial(address string) (*grpc.ClientConn, error) { return rpc.Dial(address, c...) }

func (c connector) moving(address string) (*grpc.ClientConn, func(string), error) {
	return rpc.DialMoving(address, c...)
}

// unspecified reports whether a listener on host takes connections on every interface.
func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// share prepares a server for sharing its database: it sets the name and the address by
// which the others know it.
func (c *Config) share(ctx context.Context, self grpc.ClientConnInterface, connect connector) (*shared, error) {
	name, err := c.nodeName()
	if err != nil {
		return nil, fmt.Errorf("the name of this server: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Peer)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the other servers on %s: %w; choose another address with --peer (port 0: any free port)", c.Peer, err)
	}
	s := &shared{name: name, listener: l, address: cmp.Or(c.Tools.Advertise, l.Addr().String()), connect: connect}
	s.nodes = node.NewGroup(name, self, connect.moving)
	c.Sandbox.Node, c.Tools.Advertise = name, s.address
	if !c.Sandbox.Exports() {
		c.Session.WorkspaceExport = session.ExportOff // there is nowhere to copy to
	}
	return s, nil
}

// server returns the server for session.
func (s *shared) server() *session.Server {
	return &session.Server{Name: s.name, Address: s.address, Learn: s.nodes.Learn, Ask: s.ask}
}

// ask asks the server at an address for the name of its sandbox node.
func (s *shared) ask(ctx context.Context, address string) (string, error) {
	conn, err := s.connect.dial(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	r, err := sandboxv1.NewWorkspaceServiceClient(conn).GetCapabilities(principal.With(ctx, principal.Service("default", "default")), &sandboxv1.GetCapabilitiesRequest{})
	return r.GetNode(), err
}

// nodeFile has the node's name, beside the workspaces that belong to it.
const nodeFile = ".node"

// nodeName returns the name of this server's sandbox node: the configured one, or the
// one that its data directory got at the first start.
func (c *Config) nodeName() (string, error) {
	if c.Sandbox.Node != "" {
		return c.Sandbox.Node, nil
	}
	file := filepath.Join(c.Sandbox.Data, nodeFile)
	text, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(text)); err == nil && name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	fresh := id.New()
	return write(file, cmp.Or(host, "server")+"-"+fresh[len(fresh)-8:])
}

// write writes a file whole, or not, and returns what it has now.
func write(file, text string) (string, error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(dir, nodeFile+"-")
	if err != nil {
		return "", err
	}
	_, err = temp.WriteString(text + "\n")
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return text, nil
}
