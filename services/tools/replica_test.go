package tools

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// replicas are several services on one Postgres and one sandbox, each with an
// address of its own.
type replicas struct {
	*fixture
	mu       sync.Mutex
	services map[string]*Service
	cut      map[string]bool // addresses that nobody reaches
	dialed   []string
}

// newReplicas starts replica "a", which the fixture's methods ask.
func newReplicas(t *testing.T, lease time.Duration) (*replicas, *replica) {
	t.Helper()
	url := pgtest.New(t)
	r := &replicas{services: map[string]*Service{}, cut: map[string]bool{}}
	r.fixture = &fixture{t: t, config: Defaults()}
	r.config.DatabaseURL, r.config.LeaseTTL = config.Secret(url), lease
	r.sandbox, r.conn = sandboxtest.New(t)
	a := r.replica("a:1")
	r.calls = a.calls
	return r, a
}

// replica is one of them.
type replica struct {
	*fixture
	quit func() // ends its loops: it renews nothing any more
}

func (r *replicas) replica(address string) *replica {
	r.t.Helper()
	c := r.config
	c.Advertise = address
	s, err := New(r.t.Context(), c, Deps{Sandbox: r.conn, Log: slog.New(slog.NewTextHandler(r.t.Output(), nil)), Dial: r.dial})
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.services[address] = s
	r.mu.Unlock()
	served := rpctest.Dial(r.t, s.RegisterPeer)
	sandboxtest.Connected(r.t, served)
	one := &replica{fixture: &fixture{t: r.t, sandbox: r.sandbox, calls: toolsv1.NewCallServiceClient(served)}, quit: run(r.t, s)}
	one.service = s
	r.t.Cleanup(func() {
		one.quit()
		_ = s.Close()
	})
	return one
}

func (r *replicas) dial(address string) (*grpc.ClientConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialed = append(r.dialed, address)
	if r.services[address] == nil || r.cut[address] {
		return nil, status.Error(codes.Unavailable, "no route to the replica")
	}
	return rpctest.Dial(r.t, r.services[address].RegisterPeer), nil
}

func (r *replicas) dials() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.dialed...)
}

// begins reads a stream up to its first output.
func begins(t *testing.T, stream grpc.ServerStreamingClient[toolsv1.CallToolResponse]) {
	t.Helper()
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetOutput() != nil {
			return
		}
	}
}

func (r *replicas) once(id string) {
	r.t.Helper()
	if n := r.sandbox.Starts(id); n != 1 {
		r.t.Errorf("the command of %s was started %d times", id, n)
	}
}

func TestAReplicaFollowsACallThatAnotherOneMakes(t *testing.T) {
	r, a := newReplicas(t, time.Minute)
	b := r.replica("b:1")
	q := bashCall("c1", "out before\nwait g\nout after")
	first := a.open(t.Context(), q)
	attached, err := b.calls.CallTool(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	begins(t, attached) // live, before the call has ended
	r.sandbox.Release("g")
	for name, stream := range map[string]grpc.ServerStreamingClient[toolsv1.CallToolResponse]{"first": first, "other": attached} {
		if got, err := drain(stream); err != nil || got.text() != "before\nafter" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	r.once("c1")
	if got := r.dials(); len(got) != 1 || got[0] != "a:1" {
		t.Errorf("dialed %v, want the owner, once", got)
	}

	stream := a.open(t.Context(), bashCall("c2", "wait never"))
	got, err := b.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: ref("c2")})
	if err != nil || got.GetResult().GetOutcome() != outcomeCancelled {
		t.Fatalf("got %v, %v", got, err)
	}
	if end, err := drain(stream); err != nil || end.result.GetOutcome() != outcomeCancelled {
		t.Errorf("the stream ended with %v, %v", end.result, err)
	}
	b.refused(bashCall("c2", "wait never"), "CALL_CANCELLED")
}

func TestOfTwoReplicasThatAreAskedAtOnceOneMakesTheCall(t *testing.T) {
	r, a := newReplicas(t, time.Minute)
	b := r.replica("b:1")
	for _, id := range []string{"c1", "c2", "c3", "c4", "c5"} {
		var wg sync.WaitGroup
		for _, one := range []*replica{a, b, a, b} {
			wg.Go(func() {
				if got := one.must(bashCall(id, "out x"), outcomeOK); got.text() != "x" {
					t.Errorf("got %q", got.text())
				}
			})
		}
		wg.Wait()
		r.once(id)
	}
}

func TestACallOfADeadReplicaIsTakenOver(t *testing.T) {
	r, a := newReplicas(t, 500*time.Millisecond)
	b := r.replica("b:1")
	q := bashCall("c1", "out before\nwait g\nout after")
	zombie := a.open(t.Context(), q)
	begins(t, zombie)
	a.quit() // it renews nothing, as if it were stopped, and is not reached
	r.mu.Lock()
	r.cut["a:1"] = true
	r.mu.Unlock()
	taken, err := b.calls.CallTool(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	begins(t, taken)
	r.sandbox.Release("g")
	got, err := drain(taken)
	if err != nil || got.text() != "before\nafter" || got.result.GetOutcome() != outcomeOK {
		t.Fatalf("got %+v, %v", got, err)
	}
	// The old owner has seen the end, too; what is told is what was recorded.
	if late, err := drain(zombie); err != nil || late.text() != got.text() || late.result.GetDurationMs() != got.result.GetDurationMs() {
		t.Errorf("the old owner tells %v, %v, recorded is %v", late.result, err, got.result)
	}
	r.once("c1")
}

func TestAReplicaThatIsAliveButNotReachedKeepsItsCall(t *testing.T) {
	r, a := newReplicas(t, 500*time.Millisecond)
	b := r.replica("b:1")
	q := bashCall("c1", "wait g\nout x")
	stream := a.open(t.Context(), q)
	r.mu.Lock()
	r.cut["a:1"] = true
	r.mu.Unlock()
	b.refused(q, "REPLICA_UNAVAILABLE")
	r.sandbox.Release("g")
	if got, err := drain(stream); err != nil || got.text() != "x" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got := b.must(q, outcomeOK); got.text() != "x" {
		t.Errorf("from the journal: %q", got.text())
	}
	r.once("c1")
}

func TestAReplicaThatStopsHandsItsCallsOverAtOnce(t *testing.T) {
	r, a := newReplicas(t, time.Hour)
	b := r.replica("b:1")
	q := bashCall("c1", "out before\nwait g\nout after")
	begins(t, a.open(t.Context(), q))
	a.quit()
	a.service.engineCloses()
	taken, err := b.calls.CallTool(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	begins(t, taken)
	r.sandbox.Release("g")
	if got, err := drain(taken); err != nil || got.text() != "before\nafter" {
		t.Errorf("got %+v, %v", got, err)
	}
	r.once("c1")
}

// awaitBegun waits until the journal knows that a call's command has begun.
func (r *replicas) awaitBegun(id string) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		rec, err := r.services["a:1"].store.Enter(r.t.Context(), store.Ref{Tenant: "default", Session: session, Epoch: 1, CallID: id})
		if err != nil {
			r.t.Fatal(err)
		}
		if rec.Begun {
			return
		}
		select {
		case <-tick.C:
		case <-r.t.Context().Done():
			r.t.Fatal("the journal does not learn that the command began")
		}
	}
}

// engineCloses closes all but the store, which the test's end closes.
func (s *Service) engineCloses() { s.engine.Close() }

func TestAForwardedRequestGoesNoFurther(t *testing.T) {
	r, a := newReplicas(t, time.Minute)
	b := r.replica("b:1")
	q := bashCall("c1", "wait g\nout x")
	stream := a.open(t.Context(), q)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "fairlead-forwarded", "1")
	marked, err := b.calls.CallTool(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := drain(marked); err == nil || !strings.Contains(err.Error(), "another replica makes the call") {
		t.Errorf("got %v", err)
	}
	if got := r.dials(); len(got) != 0 {
		t.Errorf("it was forwarded to %v", got)
	}
	r.sandbox.Release("g")
	if _, err := drain(stream); err != nil {
		t.Error(err)
	}
}

func TestACallWhoseCommandIsGoneIsUnknown(t *testing.T) {
	r, a := newReplicas(t, 600*time.Millisecond)
	b := r.replica("b:1")
	q := bashCall("c1", "out x\nwait never")
	begins(t, a.open(t.Context(), q))
	r.awaitBegun("c1")
	a.quit()
	r.mu.Lock()
	r.cut["a:1"] = true
	r.mu.Unlock()
	a.service.engineCloses()
	r.sandbox.Vanish("c1")
	if got := b.must(q, outcomeUnknown); !strings.Contains(got.text(), "check before repeating it") {
		t.Errorf("got %q", got.text())
	}
	r.once("c1")
}
