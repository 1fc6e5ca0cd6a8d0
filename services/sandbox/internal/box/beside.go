package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Beside is a sandbox beside a session's own: it belongs to the session, counts
// against its limits and ends with it, but no command of the session's runs in it or
// sees its folder. What is done for a session with rights that its commands do not
// have is done there.
//
// A session has one at a time. It is used by one goroutine.
type Beside struct {
	session *session
	call    Call
	dir     string
	spec    Sandbox
	room    Limits          // what is left of the session's
	used    int64           // bytes that the session had then
	ctx     context.Context //nolint:containedctx // its life: everything that runs in it ends with it
	leave   func()
}

// OperatorNetwork is a way out that is the operator's own: it is not measured
// against the ceiling of what workspaces may have.
type OperatorNetwork string

// Beside makes one. Its /workspace is a new, empty folder; its home is the session's
// workspace when withFiles is set, else another empty one. network is what it may
// reach; empty: nothing. It must be closed. The wait for another one ends with the
// context, and so does everything that runs in it.
func (n *Node) Beside(ctx context.Context, c Call, generation int64, network OperatorNetwork, withFiles bool) (_ *Beside, err error) {
	s, leave, err := n.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	if err := s.mayBegin(c, generation); err != nil {
		return nil, err
	}
	select {
	case s.beside <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() {
		if err != nil {
			<-s.beside
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	forget, err := s.addTask(cancel)
	if err != nil {
		return nil, err
	}
	b := &Beside{session: s, call: c, ctx: ctx, leave: func() { cancel(nil); forget(); leave() }}
	if err := b.make(generation, network, withFiles); err != nil {
		cancel(nil)
		forget()
		return nil, err
	}
	return b, nil
}

// mayBegin refuses a caller who has lost the session, unless what it does outlives the
// holders.
func (s *session) mayBegin(c Call, generation int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitCall(c, generation); err != nil {
		return err
	}
	return s.fenceCall(c)
}

// make makes the folders. What a crash leaves of them is cleared with the staging
// folder.
func (b *Beside) make(generation int64, network OperatorNetwork, withFiles bool) (err error) {
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitCall(b.call, generation); err != nil {
		return err
	}
	used, err := s.usage.get(s.limits(), s.folders()...)
	if err != nil {
		return fmt.Errorf("count the workspace: %w", err)
	}
	own := s.sandbox("", "") // it shows no mounts
	if why := used.over(own.Limits); why != "" {
		return fmt.Errorf("%w: %s: delete files first", ErrWorkspaceFull, why)
	}
	if b.dir, err = os.MkdirTemp(s.path("staging"), "beside-"); err != nil {
		return err
	}
	b.spec = Sandbox{
		ID: own.ID + ".beside", Workspace: filepath.Join(b.dir, "workspace"), Home: filepath.Join(b.dir, "home"),
		Owner: own.Owner, Limits: own.Limits, Network: string(network), Operator: network != "", Tenant: own.Tenant, Session: own.Session,
	}
	b.room, b.used = own.Limits, used.Bytes
	b.room.WorkspaceBytes -= used.Bytes
	b.room.WorkspaceInodes -= used.Inodes
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

// Dir is its /workspace on the host. Commands of it may still do there what they
// like, until it was closed or they have ended.
func (b *Beside) Dir() string { return b.spec.Workspace }

// Usage is what its folder takes on the disk.
func (b *Beside) Usage() (Usage, error) { return measure(b.room, b.dir) }

// Environment is what makes a command use its network.
func (b *Beside) Environment() []string {
	if b.spec.Network == "" {
		return nil
	}
	return b.session.node.o.Network.Environment(b.call.ID)
}

// Close ends what runs in it, and deletes its folder.
func (b *Beside) Close() {
	b.session.node.o.Runner.Stop(b.spec.Workspace)
	if err := erase.All(b.dir); err != nil {
		b.session.node.o.Log.Error("cannot delete the folder of a sandbox", "error", err)
	}
	<-b.session.beside
	b.leave()
}

// Run runs a command in it, to its end. The error says that it did not run; how it
// ended is in the outcome.
func (b *Beside) Run(t Task) (Outcome, error) {
	t.used = b.used
	return b.session.task(b.ctx, b.call, t, b.spec, func(h nameless) (limit, why string) {
		u, err := b.Usage()
		if err != nil {
			return "", ""
		}
		h.all = max(h.all-b.used, 0) // without what is the session's own, which is not in this room
		return h.exceed(u, b.room)
	})
}
