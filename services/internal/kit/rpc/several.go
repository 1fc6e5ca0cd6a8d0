package rpc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// reconnectWait is the longest pause between two attempts to connect to a replica that does not answer: a
	// restarted replica is found within it.
	reconnectWait = 2 * time.Second
	// connectWait bounds one attempt to connect.
	connectWait = 5 * time.Second

	repeatTries = 4                      // of a unary call, the first one included
	repeatWait  = 100 * time.Millisecond // before the second try, at most; it doubles
)

// connecting sets how a connection is restored.
var connecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectWait},
	MinConnectTimeout: connectWait,
}

// replicas returns the addresses in a list such as
// "10.0.0.1:9190,10.0.0.2:9190".
func replicas(list string) ([]string, error) {
	parts := strings.Split(list, ",")
	for i, a := range parts {
		parts[i] = strings.TrimSpace(a)
		if _, _, err := net.SplitHostPort(parts[i]); err != nil {
			return nil, fmt.Errorf("%q is not an address such as 127.0.0.1:9190", parts[i])
		}
	}
	return parts, nil
}

// several returns the target for a list of replicas, and the options that spread calls over those that
// answer.
func several(addresses []string) (string, []grpc.DialOption) {
	r := manual.NewBuilderWithScheme("replicas")
	var state resolver.State
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a, ServerName: a}}})
	}
	r.InitialState(state)
	return "replicas:///" + addresses[0], []grpc.DialOption{
		grpc.WithResolvers(r),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithChainUnaryInterceptor(repeat),
	}
}

// repeat repeats a unary call at the next replica when the first one answered UNAVAILABLE: it may have been
// killed during the call. It repeats only calls that are safe to repeat: those that read, by the names of
// standard methods, and those with an idempotency key. It sets the key before the first attempt if the caller
// has not.
func repeat(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	req, safe := repeatable(method, req)
	for try, wait := 1, repeatWait; ; try, wait = try+1, wait*2 {
		err := next(ctx, method, req, reply, cc, opts...)
		if !safe || try == repeatTries || status.Code(err) != codes.Unavailable {
			return err
		}
		timer := time.NewTimer(rand.N(wait)) //nolint:gosec // spreads load, guards nothing
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// repeatable returns the request to send and whether it may be sent twice. It does not change the caller's
// request.
func repeatable(method string, req any) (any, bool) {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List") || name == "ResolveKey" {
		return req, true
	}
	msg, ok := req.(proto.Message)
	if !ok || msg.ProtoReflect().Descriptor().Fields().ByName("request_id") == nil {
		return req, false
	}
	keyed := proto.Clone(msg)
	return keyed, requestID(keyed) != ""
}
