package program

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// component is a component that uses a connection until it is closed.
type component struct {
	conn  *grpc.ClientConn
	stop  context.CancelFunc
	calls []string
}

func (*component) RegisterPublic(grpc.ServiceRegistrar) {}
func (*component) RegisterPeer(grpc.ServiceRegistrar)   {}

func (c *component) Run(ctx context.Context) error {
	c.calls = append(c.calls, "run")
	c.stop()
	<-ctx.Done()
	return nil
}

func (c *component) Close() error {
	c.calls = append(c.calls, "close")
	if c.conn.GetState() == connectivity.Shutdown {
		return errors.New("the connection was closed before the component")
	}
	return nil
}

// service returns a service whose component ends ctx as soon as it runs.
func service(made *component) Service {
	var c struct {
		Server rpc.Config       `key:",inline"`
		Log    telemetry.Config `key:"log"`
		Auth   auth.Config      `key:"auth"`
		Peer   string           `key:"peer-address" help:"a peer"`
		Nodes  node.Config      `key:",inline"`
	}
	c.Server, c.Log, c.Nodes = rpc.DefaultConfig(), telemetry.Config{Level: "error"}, node.DefaultConfig()
	return Service{Name: "tools", Version: "1", Config: &c, Server: &c.Server, Log: &c.Log, Auth: &c.Auth, New: func(_ context.Context, p *Parts) (rpc.Component, error) {
		if _, err := p.DialNodes(c.Nodes); err != nil {
			return nil, err
		}
		conn, err := p.Dial(c.Peer)
		made.conn = conn
		return made, err
	}}
}

// withKey is the flag with an internal key.
var withKey = "--auth.internal-key=" + base64.StdEncoding.EncodeToString(make([]byte, internaltoken.SeedSize))

func TestAServiceWithoutAnInternalKeySaysHowToMakeOne(t *testing.T) {
	made := &component{stop: func() {}}
	err := service(made).Run(t.Context(), []string{"--peer-address=127.0.0.1:1"})
	var fault *config.Error
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "openssl rand -base64 32") || made.calls != nil {
		t.Errorf("error %v, calls %v", err, made.calls)
	}
}

func TestAServiceRunsAndClosesItsConnectionsLast(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	made := &component{stop: stop}
	if err := service(made).Run(ctx, []string{"--peer-address=127.0.0.1:1", withKey}); err != nil {
		t.Error(err)
	}
	if want := []string{"run", "close"}; !slices.Equal(made.calls, want) {
		t.Errorf("calls %v, want %v", made.calls, want)
	}
	if s := made.conn.GetState(); s != connectivity.Shutdown {
		t.Errorf("the connection is %s after the end", s)
	}
}

func TestAServiceThatCannotBeMadeEnds(t *testing.T) {
	for name, c := range map[string]struct{ arg, variable string }{
		"an unknown flag":                   {"--color=red", ""},
		"an unknown variable":               {"--peer-address=127.0.0.1:1", "FAIRLEAD_TOOLS_COLOR"},
		"no address":                        {"--sandbox-nodes=a=127.0.0.1:1", ""},
		"an internal key that is too short": {"--auth.internal-key=AAAA", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, "red")
			}
			made := &component{stop: func() {}}
			err := service(made).Run(t.Context(), []string{withKey, c.arg})
			var fault *config.Error
			if err == nil || name != "no address" && !errors.As(err, &fault) || made.calls != nil {
				t.Errorf("error %v, calls %v", err, made.calls)
			}
		})
	}
}
