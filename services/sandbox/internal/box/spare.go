package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// spareFolder holds the folders of spares.
const spareFolder = ".spare"

// sparePause is the pause between a failure and the next try.
const sparePause = 10 * time.Second

// spare is a workspace kept ready, with a running sandbox: an empty folder, a home directory and a user. A
// session takes it over by renaming the folders. The sandbox has them open and does not know their names.
type spare struct {
	slot    int
	sandbox Sandbox
}

func (sp *spare) dir() string { return filepath.Dir(sp.sandbox.Workspace) }

// keepSpares makes spares whenever there are too few, until the context ends.
func (n *Node) keepSpares(ctx context.Context) {
	for i := 0; ; i++ {
		sp, err := n.makeSpare(ctx, i)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, ErrTooManySandboxes) {
				n.o.Log.Warn("cannot make a sandbox ahead of time", "error", err)
			}
			pause := time.NewTimer(sparePause)
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
				continue
			}
		}
		select {
		case n.spares <- sp:
		case <-ctx.Done():
			n.dropSpare(sp)
			return
		}
	}
}

func (n *Node) makeSpare(ctx context.Context, i int) (*spare, error) {
	slot, err := n.slots.acquire()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(n.o.Dir, spareFolder, strconv.Itoa(i))
	sp := &spare{slot: slot, sandbox: Sandbox{
		ID: "spare-" + strconv.Itoa(i), Workspace: filepath.Join(dir, "workspace"), Home: filepath.Join(dir, "home"),
		Owner: n.slots.owner(slot), Limits: n.o.Limits, Spare: true,
	}}
	err = os.MkdirAll(dir, 0o700)
	for _, path := range []string{sp.sandbox.Workspace, sp.sandbox.Home} {
		if err == nil {
			err = makeOwned(path, sp.sandbox.Owner)
		}
	}
	if err == nil {
		sp.sandbox.Mounts, err = n.commonMounts(sp.sandbox)
	}
	if err == nil {
		err = n.o.Runner.Warm(ctx, sp.sandbox)
	}
	if err != nil {
		n.dropSpare(sp)
		return nil, err
	}
	return sp, nil
}

// Warm makes a session's sandbox in the background, so that its first command need not wait. It makes one
// at a time. In a burst of sessions the others are left to their first commands: many at once would take
// the processors from running work. Errors are left to the first command.
func (n *Node) Warm(ctx context.Context, c Call) {
	if !n.reserveWarm() {
		return
	}
	s, leave, err := n.enter(c.Key)
	if err != nil {
		n.releaseWarm()
		return
	}
	go func() {
		defer n.releaseWarm()
		defer leave()
		if err := s.warm(context.WithoutCancel(ctx), c); err != nil {
			n.o.Log.DebugContext(ctx, "cannot make a sandbox ahead of its first command", "error", err)
		}
	}()
}

// warm makes the sandbox for the caller's next command. It skips a session whose starts are blocked, for
// example by a deletion: a wait would delay other sessions.
func (s *session) warm(ctx context.Context, c Call) error {
	if !s.workspace.starts.TryRLock() {
		return nil
	}
	defer s.workspace.starts.RUnlock()
	sandbox, err := s.workspace.sandboxFor(c)
	if err != nil {
		return err
	}
	return s.node.o.Runner.Warm(ctx, sandbox)
}

// sandboxFor returns the sandbox that a command of the caller would have.
func (ws *workspace) sandboxFor(c Call) (Sandbox, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.meta == nil {
		return Sandbox{}, ErrNoWorkspace
	}
	if err := ws.meta.unsealed(); err != nil {
		return Sandbox{}, err
	}
	mounts, _, _, err := ws.surroundings(c)
	return ws.sandbox(mounts, c.User), err
}

// reserveWarm reserves the only place for a background warm-up; Close waits for it. If it is granted, the
// caller must call releaseWarm.
func (n *Node) reserveWarm() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.warming {
		return false
	}
	n.warming = true
	n.execs.Add(1)
	return true
}

func (n *Node) releaseWarm() {
	n.mu.Lock()
	n.warming = false
	n.mu.Unlock()
	n.execs.Done()
}

// commonMounts returns the mounts that all users get. A session with other mounts does not keep the spare's
// sandbox.
func (n *Node) commonMounts(s Sandbox) (string, error) {
	if n.o.Mounts == nil {
		return "", nil
	}
	all, err := n.o.Mounts.For("", "", nil)
	if err == nil {
		all, err = placed(s.Workspace, s.Owner, all, true)
	}
	return EncodeMounts(all), err
}

func (n *Node) dropSpare(sp *spare) {
	n.o.Runner.Stop(sp.sandbox.Workspace)
	if err := erase.All(sp.dir()); err != nil {
		n.o.Log.Error("cannot remove the folders of a spare sandbox", "error", err)
	}
	n.freeSlot(sp.slot)
}

// claimSpare returns a spare, or nil if there is none.
func (n *Node) claimSpare() *spare {
	select {
	case sp := <-n.spares:
		return sp
	default:
		return nil
	}
}

// adopt makes a spare's folders the session's.
func (ws *workspace) adopt(sp *spare) error {
	if err := os.MkdirAll(ws.dir, 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{sp.sandbox.Workspace: ws.path("workspace"), sp.sandbox.Home: ws.path("home")} {
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(sp.dir(), "covers"), ws.path("covers")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // covers is a driver's folder beside the workspace
	}
	return os.Remove(sp.dir())
}

// makeOwned makes a folder with a given owner.
func makeOwned(path string, o Owner) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // the parent folder is closed; inside, all may look
		return err
	}
	if o == Self {
		return nil
	}
	if err := os.Chown(path, o.UID, o.GID); err != nil {
		return fmt.Errorf("%w: give the workspace to user %d: %w", ErrIsolation, o.UID, err)
	}
	return nil
}
