package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/certificate"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session"
)

// nodesCommand is for operators of several sandbox nodes.
type nodesCommand struct {
	List    listNodesCommand `cmd:"" default:"withargs" help:"List the nodes and their states."`
	Drain   drainCommand     `cmd:"" help:"Give a node no new workspaces, and move its workspaces away."`
	Undrain undrainCommand   `cmd:"" help:"Give a drained node new workspaces again."`
}

// peerTarget is the peer listener of a session replica: clients have no access
// to nodes.
type peerTarget struct {
	InternalKey string `placeholder:"KEY" env:"FAIRLEAD_INTERNAL_KEY" help:"The services' auth.internal-key."`
	DatabaseURL string `placeholder:"URL" env:"FAIRLEAD_DATABASE_URL" help:"The servers' database, which has the key where none is configured."`

	CA   string `placeholder:"FILE" help:"Authorities of the services' certificates, where they use TLS."`
	Cert string `placeholder:"FILE" help:"Certificate for services that ask for one."`
	Key  string `placeholder:"FILE" aliases:"cert-key" help:"Its private key."`

	Peer string `placeholder:"HOST:PORT" env:"FAIRLEAD_SESSION_PEER" default:"127.0.0.1:9190" help:"Address of the session service's peer listener."`
}

// with connects and calls f.
func (p peerTarget) with(ctx context.Context, f func(ctx context.Context, nodes sessionv1.NodeServiceClient) error) error {
	options := []rpc.DialOption{rpc.WithFallback(principal.Service("default", "default"))}
	files, err := certificate.Open(certificate.Config{CA: p.CA, Cert: p.Cert, Key: p.Key})
	if err != nil {
		return err
	}
	options = append(options, rpc.WithTLS(files))
	keys, err := p.keys(ctx)
	if err != nil {
		return err
	}
	if keys != nil {
		options = append(options, rpc.WithKeys(keys))
	}
	conn, err := rpc.Dial(p.Peer, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return p.explain(f(ctx, sessionv1.NewNodeServiceClient(conn)))
}

// keys returns the services' keys, or nil if none are given.
func (p peerTarget) keys(ctx context.Context) (*internaltoken.Keys, error) {
	keys, err := auth.Config{InternalKey: config.Secret(p.InternalKey)}.Keys()
	if !errors.Is(err, auth.ErrNoKeys) || p.DatabaseURL == "" {
		if errors.Is(err, auth.ErrNoKeys) {
			return nil, nil //nolint:nilnil // the server says that it wants a token
		}
		return keys, err
	}
	seed, err := session.ReadInternalKey(ctx, config.Secret(p.DatabaseURL), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return internaltoken.New(seed)
}

// explain says where the right address is when another kind of listener, or none, is at this one.
func (p peerTarget) explain(err error) error {
	code := apierr.Code(err)
	if code == codes.Unauthenticated {
		return fmt.Errorf("set FAIRLEAD_INTERNAL_KEY to the services' auth.internal-key, or FAIRLEAD_DATABASE_URL to the database that servers without one share: %w", err)
	}
	if err == nil || apierr.Reason(err) != "" || code != codes.Unavailable && code != codes.Unimplemented {
		return err
	}
	what := "no peer listener can be reached at " + p.Peer
	if code == codes.Unimplemented || speaksHTTP1(err) {
		what = p.Peer + " is not a peer listener"
	}
	return fmt.Errorf("%s; --peer takes the address that a server prints after peer at its start (a server on SQLite has one node and no such address): %w", what, err)
}

type listNodesCommand struct{ peerTarget }

// Run prints the nodes.
func (c listNodesCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, func(ctx context.Context, nodes sessionv1.NodeServiceClient) error {
		resp, err := nodes.ListNodes(ctx, &sessionv1.ListNodesRequest{})
		if err != nil {
			return err
		}
		out := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
		_, _ = fmt.Fprintln(out, "NODE\tSTATE\tWORKSPACES\tDRAINING")
		for _, n := range resp.Nodes {
			draining := "no"
			if n.Draining {
				draining = "yes"
			}
			_, _ = fmt.Fprintf(out, "%s\t%s\t%d\t%s\n", n.Name, strings.TrimPrefix(n.State.String(), "NODE_STATE_"), n.Workspaces, draining)
		}
		return out.Flush()
	})
}

type drainCommand struct {
	peerTarget
	Node string `arg:"" help:"The node's name."`
}

// Run drains the node.
func (c drainCommand) Run(ctx context.Context, s stdio) error {
	return c.set(ctx, s, true, "is draining: idle workspaces leave it now, others when their next turn begins; 'fairlead nodes list' counts those that remain")
}

func (c drainCommand) set(ctx context.Context, s stdio, draining bool, said string) error {
	return c.with(ctx, func(ctx context.Context, nodes sessionv1.NodeServiceClient) error {
		if _, err := nodes.DrainNode(ctx, &sessionv1.DrainNodeRequest{Node: c.Node, Draining: draining}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "%s %s\n", c.Node, said)
		return err
	})
}

type undrainCommand struct{ drainCommand }

// Run uses the node again.
func (c undrainCommand) Run(ctx context.Context, s stdio) error {
	return c.set(ctx, s, false, "is used again")
}
