package load

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// connect opens the connections to Fairlead.
func (l *Load) connect() (err error) {
	o := l.options
	if l.public, err = l.open(o.Replicas, o.Tools); err != nil {
		return err
	}
	gateway := rest{o.HTTP, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	l.public.entries, l.public.lookers = append(l.public.entries, gateway), append(l.public.lookers, gateway)
	l.pages = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	conn, err := l.dial(o.GRPC)
	if err != nil {
		return err
	}
	l.gateway = sessionv1.NewSessionServiceClient(conn)
	l.peers, err = l.open(o.SessionPeers, o.ToolPeers)
	return err
}

// open makes the ways over the addresses of session and tools. Peers learn who calls, from the call's context.
func (l *Load) open(sessions, tools []string) (d door, err error) {
	for _, a := range sessions {
		conn, err := l.dial(a)
		if err != nil {
			return d, err
		}
		d.entries = append(d.entries, newReplica(a, conn))
	}
	for _, a := range tools {
		conn, err := l.dial(a)
		if err != nil {
			return d, err
		}
		d.lookers = append(d.lookers, newTools(a, conn))
	}
	return d, nil
}

func (l *Load) dial(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(l.options.Keys.UnaryClient(nil)), grpc.WithStreamInterceptor(l.options.Keys.StreamClient(nil)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}, MinConnectTimeout: time.Second}))
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// Operation reads an operation of a session from a tools replica, by its
// number.
func (l *Load) Operation(ctx context.Context, s *record.Session, replica int, call string) (record.Look, error) {
	d := l.public
	if s.Tenant != "" {
		d = l.peers
	}
	return d.lookers[replica].look(ctx, "operations/"+call)
}
