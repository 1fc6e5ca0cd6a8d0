// Package operation watches work that outlives the turn that started it.
//
// An operation is a row of the store and an exec of the sandbox with the same id.
// The row begins together with the result of the call that started it. One replica
// at a time watches the operation, under a lease and a claim: it reads and stores
// the exec's output, and stores the end, once. When that replica dies, another one
// reads the output again from its beginning. The exec is acknowledged when the
// operation is deleted, so that nothing is lost between two watchers.
package operation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// batch bounds how many operations a replica starts to watch at a time.
	batch = 100
	// looks is how often a replica looks for operations within a lease.
	looks = 3
	// sweepPause is the time between two deletions of old rows.
	sweepPause = 30 * time.Second
	// poll is the interval at which a waiting request reads the operation.
	poll = 200 * time.Millisecond
	// cancelTimeout bounds one attempt to stop an exec.
	cancelTimeout = 30 * time.Second
)

// Config configures a Manager. All fields are required.
type Config struct {
	Store store.Store
	// Sandbox reaches the sandbox service.
	Sandbox grpc.ClientConnInterface
	// Owner is this replica, and Lease how long it may watch an operation
	// without renewal.
	Owner string
	Lease time.Duration
	// Keep is how long an operation that has ended is kept.
	Keep time.Duration
	Log  *slog.Logger
}

// Manager watches operations. It is safe for concurrent use.
type Manager struct {
	Config
	execs sandboxv1.ExecServiceClient
	kick  chan struct{}
}

// New returns a manager. It starts nothing.
func New(c Config) *Manager {
	return &Manager{Config: c, execs: sandboxv1.NewExecServiceClient(c.Sandbox), kick: make(chan struct{}, 1)}
}

// Kick makes the manager look for operations now, because one began or is to
// stop.
func (m *Manager) Kick() {
	select {
	case m.kick <- struct{}{}:
	default: // a look is pending
	}
}

// Run watches operations and deletes old ones until ctx ends. Then it waits for
// its watchers.
func (m *Manager) Run(ctx context.Context) {
	w := watchers{m: m, running: map[key]*watcher{}}
	defer w.close()
	look, sweep := time.NewTicker(m.Lease/looks), time.NewTicker(sweepPause)
	defer look.Stop()
	defer sweep.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-m.kick:
		case <-sweep.C:
			if err := m.sweep(ctx); err != nil && ctx.Err() == nil {
				m.Log.WarnContext(ctx, "old operations not deleted", "error", err.Error())
			}
		}
	}
}

// sweep deletes operations that ended long enough ago.
func (m *Manager) sweep(ctx context.Context) error {
	expired, err := m.Store.ExpiredOperations(ctx, batch)
	if err != nil {
		return err
	}
	for _, o := range expired {
		_, err := m.execs.AcknowledgeExec(as(ctx, o), &sandboxv1.AcknowledgeExecRequest{Call: ref(o), Operation: true})
		if err != nil && !gone(err) && !o.Moved {
			return err
		}
		if err := m.Store.DeleteOperation(ctx, o.OperationKey); err != nil {
			return err
		}
	}
	return m.Store.Sweep(ctx)
}

// Cancel stops an operation and returns it as it ended. It stores the request
// unless it is nil.
func (m *Manager) Cancel(ctx context.Context, k store.OperationKey, q *store.Request) (store.Operation, error) {
	o, err := m.Store.StopOperation(ctx, k, q)
	if err != nil || o.State != store.Running {
		return o, err
	}
	// The watcher, on any replica, stores the end. The exec is stopped at once,
	// before the watcher learns of the request.
	if err := m.stop(ctx, o); err != nil {
		return o, err
	}
	m.Kick()
	return m.Await(ctx, k)
}

// Await waits until an operation or ctx ends.
func (m *Manager) Await(ctx context.Context, k store.OperationKey) (store.Operation, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		o, err := m.Store.GetOperation(ctx, k)
		if err != nil || o.State != store.Running {
			return o, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return o, ctx.Err()
		}
	}
}

// Forget stops and deletes the operations of a deleted session. No new one can
// begin by then.
func (m *Manager) Forget(ctx context.Context, tenant, session string) error {
	for {
		running, err := m.Store.ListOperations(ctx, store.OperationPage{Tenant: tenant, Session: session, Running: true, Limit: batch})
		if err != nil {
			return err
		}
		for _, o := range running {
			if err := m.stop(ctx, o); err != nil {
				return err
			}
		}
		if len(running) < batch {
			return m.Store.DeleteOperations(ctx, tenant, session)
		}
	}
}

// stop kills an operation's exec, if there is one.
func (m *Manager) stop(ctx context.Context, o store.Operation) error {
	if o.Moved {
		return nil // it ended with its place
	}
	ctx, cancel := context.WithTimeout(as(ctx, o), cancelTimeout)
	defer cancel()
	_, err := m.execs.CancelExec(ctx, &sandboxv1.CancelExecRequest{Call: ref(o), Operation: true})
	switch {
	case err == nil || gone(err):
		return nil
	case errors.Is(err, remote.ErrUnavailable):
		return errors.Join(tool.ErrUnavailable, err)
	}
	return err
}

// ref returns the reference of an operation's exec. The sandbox ignores its
// epoch.
func ref(o store.Operation) *commonv1.CallRef {
	return &commonv1.CallRef{Session: o.Session, Epoch: 1, CallId: o.ID, Node: o.Node, WorkspaceGeneration: o.Generation}
}

// user is the user as whom operations are watched: no real user.
const user = "operations"

// as returns a context for the operation's tenant and node.
func as(ctx context.Context, o store.Operation) context.Context {
	if o.Node != "" {
		ctx = node.At(ctx, o.Node)
	}
	return principal.With(ctx, principal.Service(o.Tenant, user))
}

// gone reports whether the sandbox does not know the exec, or no longer.
func gone(err error) bool {
	switch apierr.As[sandboxv1.ErrorReason](err) {
	case sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND, sandboxv1.ErrorReason_ERROR_REASON_EXEC_ACKNOWLEDGED,
		sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND, sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION:
		return true
	}
	return apierr.Reason(err) == node.ReasonUnknownNode
}
