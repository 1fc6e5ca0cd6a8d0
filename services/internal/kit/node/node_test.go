package node_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// serve starts a node that says by its health which one it is.
func serve(t *testing.T, is healthpb.HealthCheckResponse_ServingStatus) string {
	t.Helper()
	var l net.ListenConfig
	lis, err := l.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	h.SetServingStatus("", is)
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(lis)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return lis.Addr().String()
}

func TestCallsGoToTheNodeOfTheirContext(t *testing.T) {
	t.Parallel()
	a, b := healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	set, err := node.Dial([]string{"a=" + serve(t, a), "b=" + serve(t, b)}, func(address string) (*grpc.ClientConn, error) { return rpc.Dial(address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	client := healthpb.NewHealthClient(set)
	ask := func(ctx context.Context) (healthpb.HealthCheckResponse_ServingStatus, error) {
		r, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		stream, opening := client.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil || opening != nil {
			return 0, err
		}
		first, err := stream.Recv()
		if first.GetStatus() != r.GetStatus() {
			t.Errorf("a stream goes to %v, a call to %v", first, r)
		}
		return r.GetStatus(), err
	}
	for _, c := range []struct {
		ctx  context.Context
		want healthpb.HealthCheckResponse_ServingStatus
	}{{t.Context(), a}, {node.At(t.Context(), ""), a}, {node.At(t.Context(), "a"), a}, {node.At(t.Context(), "b"), b}} {
		if got, err := ask(c.ctx); err != nil || got != c.want {
			t.Errorf("answered %v, %v; want %v", got, err, c.want)
		}
	}
	if _, err := ask(node.At(t.Context(), "c")); apierr.Reason(err) != node.ReasonUnknownNode {
		t.Errorf("an unknown node: %v", err)
	}
}

func TestAListOfNodesIsChecked(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{"a"}, {"=x", "a=y"}, {"a="}, {"a=x:1", "a=y:1"}} {
		if _, _, err := node.Parse(list); err == nil {
			t.Errorf("%v was taken", list)
		}
	}
	names, addresses, err := node.Parse([]string{" a=x:1", "b=y=z"})
	if err != nil || len(names) != 2 || names[0] != "a" || addresses[0] != "x:1" || addresses[1] != "y=z" {
		t.Errorf("%v %v %v", names, addresses, err)
	}
}

func TestAGroupFollowsItsNodesToTheirAddresses(t *testing.T) {
	t.Parallel()
	a, b := healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	self, err := rpc.Dial(serve(t, a))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = self.Close() })
	set := node.NewGroup("self", self, func(address string) (*grpc.ClientConn, func(string), error) { return rpc.DialMoving(address) })
	t.Cleanup(func() { _ = set.Close() })
	ask := func(name string) (healthpb.HealthCheckResponse_ServingStatus, error) {
		r, err := healthpb.NewHealthClient(set).Check(node.At(t.Context(), name), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(false))
		return r.GetStatus(), err
	}
	if got, err := ask(""); err != nil || got != a {
		t.Errorf("this program answers %v, %v", got, err)
	}
	if _, err := ask("other"); apierr.Reason(err) != node.ReasonUnknownNode || !strings.HasPrefix(apierr.Message(err), `the server "other" does not run`) {
		t.Errorf("a node that was never heard of: %v", err)
	}
	remove := func() error {
		return set.Invoke(node.At(t.Context(), "other"), "/sandbox/DeleteWorkspace", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
	}
	if got := apierr.Message(remove()); !strings.HasPrefix(got, `the session's files are on the server "other", which does not run`) {
		t.Errorf("a call about a session: %s", got)
	}
	dead := "127.0.0.1:1"
	for _, at := range []string{dead, serve(t, a), dead, "", serve(t, b)} {
		if err := set.Learn("other", at); err != nil {
			t.Fatal(err)
		}
		if at != dead && at != "" {
			continue
		}
		// The connection that it had ends after Learn has returned.
		for {
			_, err := ask("other")
			if apierr.Reason(err) == node.ReasonNodeAway && strings.HasPrefix(apierr.Message(err), `the server "other"`) {
				break
			}
			if t.Context().Err() != nil {
				t.Fatalf("at %q: %v", at, err)
			}
		}
	}
	if got, err := healthpb.NewHealthClient(set).Check(node.At(t.Context(), "other"), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil || got.GetStatus() != b {
		t.Errorf("at its last address it answers %v, %v", got, err)
	}
}
