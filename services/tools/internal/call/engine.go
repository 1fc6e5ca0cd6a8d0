// Package call takes calls from the model's words to a recorded result.
//
// A call is journaled under its id before it runs, so that whatever happens it
// has one set of arguments and is executed at most once:
//
//	none ──► asked ──► started ──► finished
//	  │        │  └──► delegated ──┘  ▲
//	  │        └────────────────► cancelled
//
// The journal is authoritative. A started call belongs to one replica at a time,
// by a lease in the journal that Run renews and a claim that counts its owners. A
// call that runs in this process is also in the engine's memory, where those who
// ask for it again meet it. One that another replica makes is followed there. One
// whose owner's lease has ended was left by a process that died, or that does not
// come forward: it is taken over and taken up again, for the sandbox knows it by
// its id. What the old owner does from then on has no effect: the database refuses
// its result, and the sandbox what it starts, because it has the call already or
// remembers that it was settled.
//
// A call outlives the stream that asked for it; its goroutine belongs to the
// engine, which waits for it in Close. What a closing engine lets go stays started
// and is free for others at once.
//
// Whoever loses a race for a call (store.ErrConflict) reads the journal again.
package call

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Errors of a call: they mean that nothing was done.
var (
	// ErrProfileNotFound says that there is no such permission profile.
	ErrProfileNotFound = errors.New("there is no such permission profile")
	// ErrIDReused says that the call's id was used for another call.
	ErrIDReused = errors.New("the call id was used for another call")
	// ErrCallCancelled says that the call was cancelled.
	ErrCallCancelled = errors.New("the call was cancelled")
	// ErrNotFound says that there is no such call.
	ErrNotFound = errors.New("there is no such call")
	// ErrNotDelegated says that the call was not handed to the caller.
	ErrNotDelegated = errors.New("the call was not handed to the caller")
	// ErrReplicaUnavailable says that another replica makes the call, and that
	// it cannot be reached now.
	ErrReplicaUnavailable = errors.New("the replica that makes the call cannot be reached")
	// ErrDigestMismatch says that an approval is for another call.
	ErrDigestMismatch = errors.New("the approval is for other arguments")
)

// releaseTimeout bounds giving up the leases of an engine that closes.
const releaseTimeout = 2 * time.Second

// maxRaces is how often a call is read again after a lost race. Each loss means
// that the call has moved forward, which it can do a few times only.
const maxRaces = 10

// Limits bound what calls may use.
type Limits struct {
	// Session is how many calls of one session run at once.
	Session int
	// Total is how many calls run at once.
	Total int
	// Duration is how long one call may run.
	Duration time.Duration
	// OutputBytes is how much output of a running call is kept for those who
	// follow it.
	OutputBytes int
}

// Config is what an engine needs. All fields are required.
type Config struct {
	Store    store.Store
	Tools    *registry.Registry
	Profiles permission.Set
	Limits   Limits
	Log      *slog.Logger
	// Now is the clock.
	Now func() time.Time
	// Self is this replica.
	Self store.Owner
	// Lease is how long a call stays this replica's without being renewed: the
	// time after which another one takes over what a dead one leaves.
	Lease time.Duration
	// OperationTTL is how long an operation may run that a call hands back, and
	// Begun is called when one has begun.
	OperationTTL time.Duration
	Begun        func()
	// Peers reaches the other replicas; nil when there are none.
	Peers Peers
}

// Peers asks other replicas, at the address of their peer face, for the calls that
// they make. An error that is not about the call, but about reaching the replica,
// is ErrReplicaUnavailable.
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

// key names a call.
type key struct{ tenant, callID string }

// New makes an engine. It starts nothing.
func New(c Config) (*Engine, error) {
	o, err := newObserver(c.Tools)
	if err != nil {
		return nil, err
	}
	return &Engine{Config: c, observe: o, slots: newSlots(c.Limits.Total, c.Limits.Session), running: map[key]*run{}}, nil
}

// Close lets go of all running calls and waits until they are let go. What they
// started goes on in the sandbox, and others may take it up.
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

// Request asks for a call.
type Request struct {
	Ref                 store.Ref
	Tool                string
	Arguments           string
	Profile             string
	Allowed             []string
	Approval            *toolsv1.Approval
	WorkspaceGeneration int64
	// Forwarded says that another replica asks, which takes this one for the
	// call's owner. It is not forwarded again.
	Forwarded bool
}

// Send takes one piece of a call. An error ends the sending, not the call.
type Send func(*toolsv1.CallToolResponse) error

// Call makes a call, or goes on with it, and sends its pieces until it has
// ended, must be asked about, or is handed back. The call goes on when ctx ends.
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

// Fence refuses all that comes of a session under a lower epoch than the reference's,
// from now on and on every replica: the journal remembers the epoch. Calls that
// have started are facts, and those that run here go on under it.
func (e *Engine) Fence(ctx context.Context, ref store.Ref) error {
	if _, err := e.Store.Enter(ctx, ref); err != nil {
		return err
	}
	for _, r := range e.runsOf(ref.Tenant, ref.Session, ref.Epoch) {
		if r.claim.Load() > 0 { // the journal has it as started; one that it has not is refused by it
			r.raise(ref.Epoch)
		}
	}
	return nil
}

// Forget closes a session that was held under epochs below next: its running calls
// are stopped, and its journal is deleted.
func (e *Engine) Forget(ctx context.Context, tenant, session string, next int64) error {
	// First the journal: from then on nothing of the session can start.
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
		if r.ref.Tenant == tenant && r.ref.Session == session && r.epoch.Load() < next {
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

// register makes a run the one of its call, or returns the one that is.
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

// settle takes a run out of memory and tells its followers how it ended. What is
// to be found in the journal has been written by then.
func (e *Engine) settle(r *run, result *tool.Result, err error) {
	e.mu.Lock()
	delete(e.running, key{r.ref.Tenant, r.ref.CallID})
	e.mu.Unlock()
	r.end(result, err)
	r.cancel(nil)
	r.release()
	e.wg.Done()
}
