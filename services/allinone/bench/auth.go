package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// measureAuth compares a unary call with an API key to the same call of an open server. The calls alternate, so that
// both meet the same machine.
func measureAuth(ctx context.Context, b *bench) error {
	const (
		goal  = 50 * time.Microsecond
		calls = 5000
	)
	open, err := b.caller(ctx, false)
	if err != nil {
		return err
	}
	defer open.stop()
	closed, err := b.caller(ctx, true)
	if err != nil {
		return err
	}
	defer closed.stop()
	if err := closed.refusesStrangers(ctx); err != nil {
		return err
	}
	var without, with stat.Times
	for i := range calls + calls/10 {
		a, err := open.call(ctx)
		if err != nil {
			return err
		}
		k, err := closed.call(ctx)
		if err != nil {
			return err
		}
		if i >= calls/10 { // the first ones warm up
			without, with = append(without, a), append(with, k)
		}
	}
	added := with.At(0.5) - without.At(0.5)
	b.row("GetSession with an API key, over gRPC", "%s; of an open server: %s", with, without)
	b.goal(added <= goal, "%s more at the median, goal: at most %s", added, goal)
	return nil
}

// caller calls one server.
type caller struct {
	server   *fleet.Fairlead
	conn     *grpc.ClientConn
	sessions sessionv1.SessionServiceClient
	key      string // empty for an open server
	session  string
}

// caller starts a server and makes a session there, and an API key if it is closed.
func (b *bench) caller(ctx context.Context, closed bool) (c *caller, err error) {
	c = &caller{}
	if c.server, err = fleet.Run(ctx, b.shape("", false)); err != nil {
		return nil, err
	}
	if c.conn, err = rpc.Dial(c.server.GRPC); err != nil {
		c.server.Stop()
		return nil, err
	}
	c.sessions = sessionv1.NewSessionServiceClient(c.conn)
	made, err := c.sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
	c.session = made.GetSession().GetName()
	if err == nil && closed {
		var k *sessionv1.CreateKeyResponse
		k, err = sessionv1.NewIdentityServiceClient(c.conn).CreateKey(ctx, &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{Title: "bench"}, FirstKey: true})
		c.key = k.GetSecret()
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *caller) stop() {
	_ = c.conn.Close()
	c.server.Stop()
}

func (c *caller) call(ctx context.Context) (time.Duration, error) {
	if c.key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.key)
	}
	begun := time.Now()
	_, err := c.sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: c.session})
	return time.Since(begun), err
}

// refusesStrangers waits until the server needs a credential: it may remember for some seconds that it was open.
func (c *caller) refusesStrangers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	stranger := *c
	stranger.key = ""
	for {
		if _, err := stranger.call(ctx); err != nil {
			return nil // it is refused
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the server with a key stays open: %w", ctx.Err())
		}
	}
}
