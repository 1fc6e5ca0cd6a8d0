// Package sandboxtest is a sandbox service for tests: files in memory, and
// commands in a language of its own. It keeps the promises that the tools
// service relies on: execs are known by call id until they are acknowledged,
// changes of files are made once per call id, and a lower epoch is refused.
package sandboxtest

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

// Sandbox is the fake. Its zero value is not usable.
type Sandbox struct {
	sandboxv1.UnimplementedExecServiceServer
	sandboxv1.UnimplementedFileServiceServer

	mu       sync.Mutex
	files    map[string][]byte // tenant/session/path
	done     map[string]any    // answers of changes, by tenant/call id
	epochs   map[string]int64
	execs    map[string]*exec
	marks    map[string]bool // cancelled before they were started
	settled  map[string]bool // acknowledged
	gates    map[string]chan struct{}
	starts   map[string]int
	changes  map[string]int
	acked    []string
	failures []error
	started  chan string
	wg       sync.WaitGroup
}

// New serves a fake until the test ends, and returns it with a connection to it.
func New(t testing.TB) (*Sandbox, *grpc.ClientConn) {
	t.Helper()
	s := &Sandbox{
		files: map[string][]byte{}, done: map[string]any{}, epochs: map[string]int64{}, execs: map[string]*exec{}, marks: map[string]bool{}, settled: map[string]bool{},
		gates: map[string]chan struct{}{}, starts: map[string]int{}, changes: map[string]int{}, started: make(chan string, 1000),
	}
	t.Cleanup(s.close)
	conn := rpctest.Dial(t, func(r grpc.ServiceRegistrar) {
		sandboxv1.RegisterExecServiceServer(r, s)
		sandboxv1.RegisterFileServiceServer(r, s)
	})
	Connected(t, conn)
	return s, conn
}

// Connected waits until a connection is made: a server that is stopped before it
// has begun to serve would count as a failed one.
func Connected(t testing.TB, conn *grpc.ClientConn) {
	t.Helper()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(t.Context(), state) {
			t.Fatal("the in-memory connection was not made")
		}
	}
}

func (s *Sandbox) close() {
	s.mu.Lock()
	for _, e := range s.execs {
		e.kill()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Put writes a file of the default tenant.
func (s *Sandbox) Put(session, path, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files["default/"+session+"/"+path] = []byte(content)
}

// Get reads a file of the default tenant.
func (s *Sandbox) Get(session, path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files["default/"+session+"/"+path]
	return string(b), ok
}

// Starts counts the actual starts of a call's command.
func (s *Sandbox) Starts(callID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts[callID]
}

// Changes counts the actual changes of files for a call.
func (s *Sandbox) Changes(callID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[callID]
}

// Acknowledged lists the calls whose execs were acknowledged.
func (s *Sandbox) Acknowledged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.acked...)
}

// Started returns a channel with the id of each call whose command is started.
func (s *Sandbox) Started() <-chan string { return s.started }

// Fail makes the next requests fail, one each.
func (s *Sandbox) Fail(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, errs...)
}

// Lose forgets a running or finished command except its id, like a restarted
// sandbox.
func (s *Sandbox) Lose(callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.execs["default/"+callID]
	e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_LOST})
	e.kill()
}

// SeeEpoch makes the fake see an epoch of a session of the default tenant.
func (s *Sandbox) SeeEpoch(session string, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochs["default/"+session] = epoch
}

// Release lets commands continue that wait for a gate.
func (s *Sandbox) Release(gate string) { close(s.gate(gate)) }

func (s *Sandbox) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

// Refuse returns an error of the sandbox service.
func Refuse(code codes.Code, reason sandboxv1.ErrorReason, message string, metadata map[string]string) error {
	return apierr.Of(code, reason, message, apierr.Metadata(metadata))
}

// Vanish makes the fake forget a command completely, like a sandbox that has
// lost its disk.
func (s *Sandbox) Vanish(callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.execs["default/"+callID]
	delete(s.execs, "default/"+callID)
	e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_LOST})
	e.kill()
}

// enterFor is enter for a request that may belong to an operation: then it ignores
// the epoch.
func (s *Sandbox) enterFor(ctx context.Context, c *commonv1.CallRef, operation bool) (tenant string, err error) {
	if operation {
		c = nil
	}
	return s.enter(ctx, c)
}

// enter returns an injected error, and fences the epoch. It is called with the
// lock held.
func (s *Sandbox) enter(ctx context.Context, c *commonv1.CallRef) (tenant string, err error) {
	tenant = principal.Tenant(ctx)
	if len(s.failures) > 0 {
		err, s.failures = s.failures[0], s.failures[1:]
		return tenant, err
	}
	if c == nil {
		return tenant, nil
	}
	key := tenant + "/" + c.GetSession()
	if c.GetEpoch() < s.epochs[key] {
		return tenant, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "the epoch is stale", nil)
	}
	s.epochs[key] = c.GetEpoch()
	return tenant, nil
}
