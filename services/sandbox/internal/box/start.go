package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// How long a command waits for one of the machine's terminals, and the pause between two tries.
const (
	terminalPatience = 2 * time.Second
	terminalPause    = 100 * time.Millisecond
)

// Start starts a command, or returns the one that the call started before. The command does not end with
// the context, which only bounds the start.
func (n *Node) Start(ctx context.Context, c Call, spec Spec) (e *Exec, attached bool, err error) {
	for patience := terminalPatience; ; patience -= terminalPause {
		e, attached, err = n.startNow(ctx, c, spec, patience > 0)
		if !errors.Is(err, ErrTerminalsTaken) {
			return e, attached, err
		}
		select {
		case <-time.After(terminalPause):
		case <-ctx.Done():
			return nil, false, fmt.Errorf("wait for a terminal: %w", ctx.Err())
		}
	}
}

// startNow is Start without waiting for a terminal; a patient caller tries again.
func (n *Node) startNow(ctx context.Context, c Call, spec Spec, patient bool) (e *Exec, attached bool, err error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	s.workspace.starts.RLock()
	defer s.workspace.starts.RUnlock()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.admitCall(c); err != nil {
		return nil, false, err
	}
	if err := s.workspace.fence(c); err != nil {
		return nil, false, err
	}
	known, gone := s.execs.find(c.ID)
	if known != nil {
		switch {
		case known.cancelled():
			return nil, false, ErrCancelled
		case !known.rec.matches(spec):
			return nil, false, fmt.Errorf("%w: another command", ErrCallIDReused)
		case known.Piped():
			return nil, false, fmt.Errorf("%w: a piped command has one stream", ErrCallIDReused)
		}
		return known, true, nil
	}
	if gone {
		return nil, false, ErrAcknowledged
	}
	e, err = s.start(ctx, c, spec, patient)
	return e, false, err
}

// start starts a command that has not been started before. The workspace's lock is held.
func (s *session) start(ctx context.Context, c Call, spec Spec, patient bool) (*Exec, error) {
	if err := s.workspace.meta.unsealed(); err != nil {
		return nil, err
	}
	limits, err := s.workspace.limits().lowered(spec.Lower)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.checkExecLimit(), s.node.checkDiskSpace()); err != nil {
		return nil, err
	}
	limits, err = s.workspace.allowance(limits)
	if err != nil {
		return nil, err
	}
	shown, env, watch, err := s.workspace.surroundings(c)
	if err != nil {
		return nil, err
	}
	if err := s.node.capacity.reserve(s.key); err != nil {
		return nil, err
	}
	e, err := s.newExec(c, spec)
	if err != nil {
		s.node.capacity.release(s.key)
		return nil, err
	}
	e.limits, e.common, e.shared = limits, s.workspace.limits(), sharing{shown, s.workspace.separateUser(c.User)}
	e.quota = s.workspace.watchQuota()
	e.active.Store(true)
	s.workspace.edits.count++
	s.execs.add(e)
	command := s.workspace.command(c, spec, limits, shown, env)
	e.network = s.node.follow(ctx, command.Sandbox, c.ID)
	command.Enter, command.Patient = e.network.Enter, patient
	ended := s.node.o.Observer.Started(ctx, c, spec.Argv)
	var unrecorded error
	command.Before = sync.OnceValue(func() func() error {
		synced := s.node.journal.add(e.start.entry, e)
		return func() error { unrecorded = synced(); return unrecorded }
	})
	running := s.starts()
	p, err := s.node.o.Runner.Start(ctx, command)
	if err != nil {
		running.ended()
		e.active.Store(false)
		s.execs.forget(c.ID)
		e.network.Forget()
		ended(Outcome{Reason: NotStarted, Message: err.Error()})
		s.node.capacity.release(s.key)
		switch {
		case errors.Is(err, ErrTooManySandboxes), errors.Is(err, ErrTerminalsTaken):
			return nil, err
		case unrecorded != nil:
			return nil, fmt.Errorf("record the command: %w", unrecorded)
		}
		return nil, fmt.Errorf("%w: %w", ErrIsolation, err)
	}
	e.begin(p)
	running.runs(p, e.stop)
	go func() {
		defer s.node.capacity.finished()
		e.run(p, e.rec.Started, watch)
		running.ended()
		e.network.Forget()
		ended(*e.Outcome())
		s.node.capacity.leave(s.key)
	}()
	return e, nil
}

// follow is Network.Follow; it also accepts a sandbox without a network.
func (n *Node) follow(ctx context.Context, s Sandbox, callID string) Followed {
	if s.Network == "" {
		return noFollower{}
	}
	return n.o.Network.Follow(ctx, s, callID)
}

// noFollower is the Followed of a command without a network.
type noFollower struct{}

func (noFollower) Enter(io.Closer) {}
func (noFollower) Uses() []Use     { return nil }
func (noFollower) Forget()         {}

// begin makes the process visible to other calls.
func (e *Exec) begin(p Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.process = p
	if e.stopped != nil {
		p.Kill()
	}
}

// checkExecLimit refuses a command beyond the session's maximum number.
func (s *session) checkExecLimit() error {
	if n := len(s.execs.live()); n >= s.node.o.MaxSessionExecs {
		return fmt.Errorf("%w in this session: %d of %d", ErrTooManyExecs, n, s.node.o.MaxSessionExecs)
	}
	return nil
}

// Slack of a workspace above its limits: what a command may add while it makes room.
const (
	slackBytes  = 1 << 20
	slackInodes = 64
)

// The most that a quick command may write between two looks, beyond four times the limits. A workspace
// above that is not counted any further.
const (
	farBytes  = 8 << 30
	farInodes = 1_000_000
)

// far returns the limits up to which a workspace above its own limits is counted.
func (l Limits) far() Limits {
	l.WorkspaceBytes, l.WorkspaceInodes = 4*l.WorkspaceBytes+farBytes, 4*l.WorkspaceInodes+farInodes
	return l
}

// allowance lets a command start in a workspace above its limits, because the command may make room. But
// the command may add hardly anything. It refuses a workspace that is far above.
func (ws *workspace) allowance(l Limits) (Limits, error) {
	u, err := ws.usage.Near(ws.limits().room(), ws.folders()...)
	if err != nil {
		return l, fmt.Errorf("count the workspace: %w", err)
	}
	if u.Over(l.room()) == "" {
		return l, nil
	}
	far := l.far()
	if u, err = disk.Measure(far.room(), ws.folders()...); err != nil {
		return l, fmt.Errorf("count the workspace: %w", err)
	}
	if why := u.Over(far.room()); why != "" {
		return l, fmt.Errorf("%w: %s: delete files first", ErrWorkspaceFull, why)
	}
	l.WorkspaceBytes = max(l.WorkspaceBytes, u.Bytes+slackBytes)
	l.WorkspaceInodes = max(l.WorkspaceInodes, u.Inodes+slackInodes)
	return l, nil
}

// watch counts the workspace and returns which limit is exceeded, and how.
func (ws *workspace) watch(l Limits, quick bool) (limit, why string) {
	u, err := ws.usage.Look(quick, l.room(), ws.folders()...)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			ws.node.o.Log.Error("cannot count a workspace", "error", err)
		}
		return "", ""
	}
	return u.Exceeds(l.room())
}

// longArgv is the size in bytes from which a command's arguments are not journaled. Its record has them
// soon.
const longArgv = 2048

// newExec makes the exec of a command, and the entry that must be journaled before it starts. The
// workspace's lock is held.
func (s *session) newExec(c Call, spec Spec) (*Exec, error) {
	if !callID.MatchString(c.ID) {
		return nil, fmt.Errorf("call id %q is not valid", c.ID)
	}
	r := record{CallID: c.ID, Digest: spec.digest(), Argv: spec.Argv, Started: s.node.o.Now()}
	e := newExec(s.node, s.path("execs", c.ID), r)
	e.stdin = spec.Stdin
	if spec.Piped {
		e.output.pipe = newPipe()
	}
	e.start.entry = startEntry{Key: s.key, CallID: c.ID, Digest: r.Digest, Started: r.Started, Created: s.workspace.meta.Created}
	if length(spec.Argv) < longArgv {
		e.start.entry.Argv = spec.Argv
	}
	return e, nil
}

func length(argv []string) (bytes int) {
	for _, a := range argv {
		bytes += len(a)
	}
	return bytes
}

func (ws *workspace) command(c Call, spec Spec, l Limits, mounts string, env []string) Command {
	env = append(env, spec.environment()...)
	if ws.meta.Network != "" { // the command's own variables win
		env = append(ws.node.o.Network.Environment(c.ID), env...)
	}
	return Command{
		Sandbox:  ws.sandbox(mounts, c.User),
		Argv:     spec.Argv,
		Env:      env,
		Dir:      path.Join(WorkspacePath, spec.Dir),
		Limits:   l,
		Stdin:    spec.Stdin,
		Terminal: spec.Terminal,
	}
}

// sandbox returns the sandbox of the session's workspace, with some mounts, for a user. mu is held.
func (ws *workspace) sandbox(mounts, user string) Sandbox {
	id := sha256.Sum256([]byte(ws.key.Tenant + "\x00" + ws.key.Session))
	return Sandbox{
		ID:        hex.EncodeToString(id[:12]),
		Workspace: ws.path("workspace"),
		Home:      ws.path("home"),
		Owner:     ws.node.slots.owner(ws.meta.Slot),
		Limits:    ws.limits(),
		Network:   ws.meta.Network,
		Mounts:    mounts,
		User:      ws.separateUser(user),
		Tenant:    ws.key.Tenant,
		Session:   ws.key.Session,
	}
}

// Find returns a call's exec.
func (n *Node) Find(c Call) (*Exec, error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.fenceCall(c); err != nil {
		return nil, err
	}
	e, gone := s.execs.find(c.ID)
	if gone && e == nil {
		return nil, ErrAcknowledged
	}
	if e == nil {
		return nil, fmt.Errorf("%w: call %s", ErrNoExec, c.ID)
	}
	if e.mark() {
		return nil, ErrCancelled
	}
	if e.Piped() {
		return nil, fmt.Errorf("%w: a piped command has one stream", ErrCallIDReused)
	}
	return e, nil
}

// List returns the session's execs that run or were not acknowledged, by id.
func (n *Node) List(k Key) ([]*Exec, error) {
	s, leave, err := n.sessions.enter(k)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if s.workspace.meta == nil {
		return nil, ErrNoWorkspace
	}
	return s.execs.list(), nil
}
