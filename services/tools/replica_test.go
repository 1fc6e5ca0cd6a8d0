package tools

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
)

func TestAnotherReplicaGoesOnWithACall(t *testing.T) {
	url := pgtest.New(t)
	f := newFixture(t, func(c *Config) { c.DatabaseURL = config.Secret(url) })
	second, err := New(t.Context(), f.config, Deps{Sandbox: f.conn, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	served := rpctest.Dial(t, func(r grpc.ServiceRegistrar) { second.RegisterPeer(r) })
	sandboxtest.Connected(t, served)
	other := toolsv1.NewCallServiceClient(served)

	q := bashCall("c1", "out before\nwait g\nout after")
	first := f.open(t.Context(), q)
	attached, err := other.CallTool(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	// The other replica follows the same command before it goes on.
	for {
		m, err := attached.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetOutput() != nil {
			break
		}
	}
	f.sandbox.Release("g")
	for name, stream := range map[string]grpc.ServerStreamingClient[toolsv1.CallToolResponse]{"first": first, "other": attached} {
		if a, err := drain(stream); err != nil || a.text() != "before\nafter" {
			t.Errorf("%s: got %+v, %v", name, a, err)
		}
	}
	if n := f.sandbox.Starts("c1"); n != 1 {
		t.Errorf("the command was started %d times", n)
	}

	// A call that runs on one replica is cancelled on the other.
	stream := f.open(t.Context(), bashCall("c2", "wait never"))
	got, err := other.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("c2")})
	if err != nil || got.GetResult().GetOutcome() != outcomeCancelled {
		t.Fatalf("got %v, %v", got, err)
	}
	a, err := drain(stream)
	if err == nil && a.result.GetOutcome() != outcomeCancelled {
		t.Errorf("the stream ended with %v", a.result)
	}
	f.refused(bashCall("c2", "wait never"), "CALL_CANCELLED")
}
