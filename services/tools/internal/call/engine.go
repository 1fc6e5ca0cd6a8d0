// Package call carries calls from the model's request to a recorded result.
//
// A call is journaled under its id before it runs, so that whatever happens it
// has one set of arguments and is executed at most once:
//
//	none ──► asked ──► started ──► finished
//	  │        │  └──► delegated ──┘  ▲
//	  │        └────────────────► cancelled
//
// A started call whose tool has a question becomes an asked one, and is started again
// with the answer. A tool that must not stop keeps running while it waits: then the
// call stays started, and the answer is for the process that runs it.
//
// The journal is authoritative. A started call belongs to one replica at a time,
// by a lease in the journal, which Run renews, and a claim, which counts its
// owners. A call that runs in this process is also in the engine's memory, where
// repeated requests find it. A call of another replica is followed there.
//
// If the lease of a call's owner has ended, its process has died or hangs: another
// replica takes the call over and resumes it, because the sandbox knows the call
// by its id. Later actions of the old owner have no effect: the database refuses
// its result, and the sandbox refuses its starts, because it has the call already
// or remembers that it was settled.
//
// A call outlives the stream that requested it. Its goroutine belongs to the
// engine, which waits for it in Close. A call that a closing engine releases stays
// started, and other replicas may take it over at once.
//
// A caller that loses a race for a call (store.ErrConflict) reads the journal
// again.
package call

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Errors of a call. They mean that the request had no effect.
var (
	// ErrIDReused says that the call's id was used for another call.
	ErrIDReused = errors.New("the call id was used for another call")
	// ErrCallCancelled says that the call was cancelled.
	ErrCallCancelled = errors.New("the call was cancelled")
	// ErrNotFound says that there is no such call.
	ErrNotFound = errors.New("there is no such call")
	// ErrNotDelegated says that the call was not handed to the caller.
	ErrNotDelegated = errors.New("the call was not handed to the caller")
	// ErrReplicaUnavailable says that another replica makes the call and cannot
	// be reached now.
	ErrReplicaUnavailable = errors.New("the replica that makes the call cannot be reached")
	// ErrQuestionMismatch says that an answer is to another question than the open
	// one, or that none is open.
	ErrQuestionMismatch = errors.New("the answer is not to the open question of the call")
	// ErrAnswer says that an answer does not keep to its question's form.
	ErrAnswer = errors.New("the answer does not keep to the form of its question")
	// ErrDigestMismatch says that an approval is for another call.
	ErrDigestMismatch = errors.New("the approval is for other arguments")
)

// releaseTimeout bounds the release of a closing engine's leases.
const releaseTimeout = 2 * time.Second

// maxRaces is how often a call is read again after a lost race. Each loss means
// that the call has moved forward, which can happen only a few times.
const maxRaces = 10

// Limits bound the resources of calls.
type Limits struct {
	// Session bounds the concurrent calls of one session.
	Session int
	// Total bounds the concurrent calls.
	Total int
	// Duration bounds the time of one call.
	Duration time.Duration
	// OutputBytes bounds the output of a running call that is kept for its
	// followers.
	OutputBytes int
}

// Config configures an engine. All fields are required.
type Config struct {
	Store store.Store
	Tools *registry.Registry
	// Servers has the tools of the MCP servers that a request names.
	Servers  *mcp.Pool
	Policies *policy.Source
	Limits   Limits
	Log      *slog.Logger
	// Now is the clock.
	Now func() time.Time
	// Self is this replica.
	Self store.Owner
	// Lease is how long this replica keeps a call without renewing it. After
	// that, another replica takes a dead one's calls over.
	Lease time.Duration
	// OperationTTL bounds the time of an operation that a call hands back.
	// Begun is called when one has begun.
	OperationTTL time.Duration
	Begun        func()
	// Peers reaches the other replicas; nil without any.
	Peers Peers
}

// Peers calls other replicas, at the address of their peer face, for their calls.
// If the replica cannot be reached, the error is ErrReplicaUnavailable.
type Peers interface {
	Call(ctx context.Context, address string, q Request, send Send) error
	Cancel(ctx context.Context, address string, ref store.Ref) (*tool.Result, error)
}

// Engine makes calls. It is safe for concurrent use.
type Engine struct {
	Config
	observe *observer
	slots   *slots

	mu      sync.Mutex
	running map[key]*run
	closed  bool
	wg      sync.WaitGroup
}

// key identifies a call.
type key struct{ tenant, callID string }

// New returns an engine. It starts nothing.
func New(c Config) (*Engine, error) {
	o, err := newObserver(c.Tools)
	if err != nil {
		return nil, err
	}
	return &Engine{Config: c, observe: o, slots: newSlots(c.Limits.Total, c.Limits.Session), running: map[key]*run{}}, nil
}

// Close releases all running calls and waits for their goroutines. Their
// commands keep running in the sandbox, and other replicas may take them over.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	for _, r := range e.running {
		r.cancel(tool.ErrClosing)
	}
	e.mu.Unlock()
	e.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := e.Store.Release(ctx, e.Self.ID); err != nil {
		e.Log.WarnContext(ctx, "leases not released; others take over when they end", "error", err.Error())
	}
}

// Request requests a call.
type Request struct {
	Ref       store.Ref
	Tool      string
	Arguments string
	// Policy says what decides on the call.
	Policy   policy.Query
	Allowed  []string
	Servers  []*commonv1.McpServer
	Approval *toolsv1.Approval
	// Answer is a person's answer to the call's question.
	Answer *commonv1.QuestionAnswer
	// Forwarded says that the request comes from another replica, which takes
	// this one for the call's owner. It is not forwarded again.
	Forwarded bool
}

// Send sends one piece of a call. An error ends the sending, not the call.
type Send func(*toolsv1.CallToolResponse) error

// Call makes or resumes a call, and sends its pieces until it has ended, needs
// an approval, or is delegated. The call goes on when ctx ends.
func (e *Engine) Call(ctx context.Context, q Request, send Send) error {
	digest := Digest(q.Tool, q.Arguments)
	return e.retry(ctx, q.Ref, func(rec store.Record) error {
		if err := sameCall(rec, q, digest); err != nil {
			return err
		}
		a := &attempt{Engine: e, Request: q, digest: digest, rec: rec, send: send}
		return a.advance(ctx)
	})
}

// sameCall checks that an id and an approval belong to the call.
func sameCall(rec store.Record, q Request, digest string) error {
	if rec.State != store.None && rec.Session != q.Ref.Session || rec.Digest != "" && rec.Digest != digest {
		return ErrIDReused
	}
	if q.Approval != nil && q.Approval.GetDigest() != digest {
		return ErrDigestMismatch
	}
	return nil
}

// Fence refuses all later requests of a session under a lower epoch than the
// reference's, on every replica: the journal stores the epoch. Calls that have
// started go on, and those that run here use the new epoch.
func (e *Engine) Fence(ctx context.Context, ref store.Ref) error {
	if _, err := e.Store.Enter(ctx, ref); err != nil {
		return err
	}
	for _, r := range e.runsOf(ref.Tenant, ref.Fenced(), ref.Epoch) {
		if r.claim.Load() > 0 { // the journal has it as started, and refuses runs that it does not have
			r.raise(ref.Epoch)
		}
	}
	return nil
}

// Forget removes a session that was held under epochs below next: it stops the
// running calls and deletes the journal.
func (e *Engine) Forget(ctx context.Context, tenant, session string, next int64) error {
	// The journal first: from then on no call of the session can start.
	if err := e.Store.DeleteSession(ctx, tenant, session, next); err != nil {
		return err
	}
	for _, r := range e.runsOf(tenant, session, next) {
		r.cancel(tool.ErrCancelled)
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) runsOf(tenant, session string, next int64) []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	var runs []*run
	for _, r := range e.running {
		if r.ref.Tenant == tenant && r.ref.Fenced() == session && r.epoch.Load() < next {
			runs = append(runs, r)
		}
	}
	return runs
}

func (e *Engine) find(ref store.Ref) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[key{ref.Tenant, ref.CallID}]
}

// register makes a run the current one of its call, or returns the existing
// one.
func (e *Engine) register(r *run) (*run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, tool.ErrClosing
	}
	k := key{r.ref.Tenant, r.ref.CallID}
	if other := e.running[k]; other != nil {
		return other, nil
	}
	e.running[k] = r
	e.wg.Add(1)
	return r, nil
}

// settle removes a run from memory and tells its followers how it ended. The
// journal has the result by then.
func (e *Engine) settle(r *run, result *tool.Result, err error) {
	e.mu.Lock()
	delete(e.running, key{r.ref.Tenant, r.ref.CallID})
	e.mu.Unlock()
	r.end(result, err)
	r.cancel(nil)
	r.release()
	e.wg.Done()
}
