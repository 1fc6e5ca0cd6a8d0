package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// ServiceSandbox is a second sandbox of a session, for the service's own work. It counts against the
// session's limits and ends with the session. The session's commands neither run in it nor see its
// folder. The service uses it for work that
// needs rights which the session's commands lack.
//
// A session has at most one at a time. Only one goroutine may use it.
type ServiceSandbox struct {
	session   *session
	call      Call
	dir       string
	spec      Sandbox
	remaining Limits          // the rest of the session's limits
	ctx       context.Context //nolint:containedctx // the sandbox's life: its end stops everything in the sandbox
	leave     func()
}

// OperatorNetwork is a way out that the operator configures. The ceiling for workspaces does not limit it.
type OperatorNetwork string

// NewServiceSandbox makes a sandbox for the service's work. Its /workspace is a new, empty folder. Its home is the session's workspace
// if withFiles is set, and otherwise an empty folder. network is what it may reach; if empty, nothing. The
// caller must close it. The end of the context stops the wait for another one, and everything that runs in
// it.
func (n *Node) NewServiceSandbox(ctx context.Context, c Call, network OperatorNetwork, withFiles bool) (_ *ServiceSandbox, err error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	if err := s.mayBegin(c); err != nil {
		return nil, err
	}
	select {
	case s.tasks.beside <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() {
		if err != nil {
			<-s.tasks.beside
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	forget, err := s.addTask(cancel)
	if err != nil {
		return nil, err
	}
	b := &ServiceSandbox{session: s, call: c, ctx: ctx, leave: func() { cancel(nil); forget(); leave() }}
	if err := b.make(network, withFiles); err != nil {
		cancel(nil)
		forget()
		return nil, err
	}
	return b, nil
}

// mayBegin refuses a caller that has lost the session, unless its work outlives the session's holders.
func (s *session) mayBegin(c Call) error {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.admitCall(c); err != nil {
		return err
	}
	return s.workspace.fenceCall(c)
}

// make makes the folders. Folders that a crash leaves are cleared with the staging folder.
func (b *ServiceSandbox) make(network OperatorNetwork, withFiles bool) (err error) {
	s := b.session
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.admitCall(b.call); err != nil {
		return err
	}
	used, err := s.workspace.usage.Get(s.workspace.limits().room(), s.workspace.folders()...)
	if err != nil {
		return fmt.Errorf("count the workspace: %w", err)
	}
	own := s.workspace.sandbox("", "") // it shows no mounts
	if why := used.Over(own.Limits.room()); why != "" {
		return fmt.Errorf("%w: %s: delete files first", ErrWorkspaceFull, why)
	}
	if b.dir, err = os.MkdirTemp(s.path("staging"), "beside-"); err != nil {
		return err
	}
	b.spec = Sandbox{
		ID: own.ID + ".beside", Workspace: filepath.Join(b.dir, "workspace"), Home: filepath.Join(b.dir, "home"),
		Owner: own.Owner, Limits: own.Limits, Network: string(network), Operator: network != "", Tenant: own.Tenant, Session: own.Session,
	}
	b.remaining = own.Limits
	b.remaining.WorkspaceBytes -= used.Bytes
	b.remaining.WorkspaceInodes -= used.Inodes
	err = errors.Join(makeOwned(b.spec.Workspace, own.Owner), makeOwned(b.spec.Home, own.Owner))
	if err != nil {
		return errors.Join(err, erase.All(b.dir))
	}
	if withFiles {
		if err := rights.Keep(unix.AT_FDCWD, own.Workspace); err != nil {
			return errors.Join(err, erase.All(b.dir))
		}
		b.spec.Home = own.Workspace
	}
	return nil
}

// Dir returns its /workspace on the host. Its commands may change the folder until they or the sandbox have
// ended.
func (b *ServiceSandbox) Dir() string { return b.spec.Workspace }

// Usage returns what its folder takes on the disk.
func (b *ServiceSandbox) Usage() (disk.Size, error) { return disk.Measure(b.remaining.room(), b.dir) }

// Environment returns the variables that make a command use its network.
func (b *ServiceSandbox) Environment() []string {
	if b.spec.Network == "" {
		return nil
	}
	return b.session.node.o.Network.Environment(b.call.ID)
}

// Close ends all processes in it and deletes its folder.
func (b *ServiceSandbox) Close() {
	b.session.node.o.Runner.Stop(b.spec.Workspace)
	if err := erase.All(b.dir); err != nil {
		b.session.node.o.Log.Error("cannot delete the folder of a sandbox", "error", err)
	}
	<-b.session.tasks.beside
	b.leave()
}

// Run runs a command in it to its end. An error means that the command did not run; the outcome says how it
// ended.
func (b *ServiceSandbox) Run(t Task) (Outcome, error) {
	return b.session.task(b.ctx, b.call, t, b.spec, func() (limit, why string) {
		u, err := b.Usage()
		if err != nil {
			return "", ""
		}
		return u.Exceeds(b.remaining.room())
	})
}
